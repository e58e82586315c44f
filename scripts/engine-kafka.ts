/**
 * Kafka's own broker from its published jars: one node in KRaft mode on loopback. The jars are
 * fetched once by Maven and kept in the user's cache.
 */
import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { CACHE, type Engine } from './engine.ts';
import {
  LOGIN_PROTOCOLS,
  loginListeners,
  loginSettings,
  loginUsers,
  loginVariables,
  makeKeys,
} from './engine-kafka-login.ts';
import { freePorts } from './free-ports.ts';

const POM = join(import.meta.dirname, 'engine-kafka', 'pom.xml');
const VERSION = /<artifactId>kafka_2\.13<.*\n\s*<version>(.+)</.exec(
  readFileSync(POM, 'utf8'),
)?.[1];
const LIBS = join(CACHE, `kafka-${VERSION}`);
const COPY = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies';

const JAVA_MIN = 17;
const FETCH_MS_MAX = 300_000;
const READY_MS_MAX = 180_000;
const READY_LINE = 'Kafka Server started';

const runs = (command: string, args: string[]): string | undefined => {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8' });
  return status === 0 ? stdout + stderr : undefined;
};

const available = (): string | undefined => {
  if (process.platform !== 'linux' && process.platform !== 'darwin') {
    return `it is not supported on ${process.platform}; set KAFKA_BROKERS to a broker of your own`;
  }
  const java = Number(/version "([0-9]+)/.exec(runs('java', ['-version']) ?? '')?.[1] ?? 0);
  if (java < JAVA_MIN) return `it needs Java ${JAVA_MIN} or later on the PATH`;
  if (existsSync(LIBS) || runs('mvn', ['-v']) !== undefined) return undefined;
  return 'it needs Maven (mvn) on the PATH, to fetch its jars once';
};

const run = async (command: string, args: string[], timeoutMs: number): Promise<void> => {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], timeout: timeoutMs });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-2_000);
    });
  }
  const code = await new Promise((resolve, reject) =>
    child.on('close', resolve).on('error', reject),
  );
  if (code !== 0) throw new Error(`${command} failed: ${output.trim().split('\n').at(-1)}`);
};

/** Fetched into another folder and renamed, so that an interrupted fetch never looks whole. */
const fetchJars = async (log: (line: string) => void): Promise<void> => {
  if (existsSync(LIBS)) return;
  log(`fetching the jars of Kafka ${VERSION}, once`);
  const fresh = `${LIBS}.${process.pid}`;
  mkdirSync(fresh, { recursive: true });
  const args = [
    '-B',
    '-q',
    '-f',
    POM,
    COPY,
    '-DincludeScope=runtime',
    `-DoutputDirectory=${fresh}`,
  ];
  await run('mvn', args, FETCH_MS_MAX);
  await rename(fresh, LIBS).catch(() => rm(fresh, { recursive: true }));
};

type Ports = { plain: number; controller: number; login: number; expired: number };

const settingsOf = (folder: string, ports: Ports): string => {
  const addresses = `PLAINTEXT://127.0.0.1:${ports.plain},${loginListeners(ports)}`;
  return [
    'process.roles=broker,controller',
    'node.id=1',
    `controller.quorum.voters=1@127.0.0.1:${ports.controller}`,
    `listeners=${addresses},CONTROLLER://127.0.0.1:${ports.controller}`,
    `advertised.listeners=${addresses}`,
    'inter.broker.listener.name=PLAINTEXT',
    'controller.listener.names=CONTROLLER',
    `listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,${LOGIN_PROTOCOLS}`,
    ...loginSettings(folder),
    `log.dirs=${join(folder, 'log')}`,
    'auto.create.topics.enable=false',
    'offsets.topic.num.partitions=1',
    'offsets.topic.replication.factor=1',
    'transaction.state.log.num.partitions=1',
    'transaction.state.log.replication.factor=1',
    'transaction.state.log.min.isr=1',
    'group.initial.rebalance.delay.ms=0',
    '',
  ].join('\n');
};

/** The fixed first byte prevents a leading dash, which Kafka's tool would take for an option. */
const clusterId = (): string => {
  const bytes = randomBytes(16);
  bytes[0] = 0x30;
  return bytes.toString('base64url');
};

const classPath = ['-cp', join(LIBS, '*')];

const format = async (folder: string): Promise<void> => {
  const settings = join(folder, 'server.properties');
  if (existsSync(settings)) return;
  mkdirSync(folder, { recursive: true });
  const [plain = 0, controller = 0, login = 0, expired = 0] = await freePorts(4);
  const draft = `${settings}.draft`;
  writeFileSync(draft, settingsOf(folder, { plain, controller, login, expired }));
  await makeKeys((command, args) => run(command, args, READY_MS_MAX), folder);
  const format = ['format', '-t', clusterId(), '-c', draft, ...loginUsers()];
  await run('java', [...classPath, 'kafka.tools.StorageTool', ...format], READY_MS_MAX);
  await rename(draft, settings);
};

const variablesIn = (folder: string): Readonly<Record<string, string>> => {
  const settings = readFileSync(join(folder, 'server.properties'), 'utf8');
  const [line = ''] = /^advertised\.listeners=.*$/m.exec(settings) ?? [];
  const portOf = (name: string) => Number(new RegExp(`${name}://[^:]+:([0-9]+)`).exec(line)?.[1]);
  return {
    KAFKA_BROKERS: `127.0.0.1:${portOf('PLAINTEXT')}`,
    ...loginVariables(folder, { login: portOf('LOGIN'), expired: portOf('EXPIRED') }),
  };
};

const JVM = [
  '-Xms128m',
  '-Xmx512m',
  '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn',
  '-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info',
];

const untilReady = async (logFile: string, ended: () => boolean): Promise<void> => {
  const deadline = performance.now() + READY_MS_MAX;
  while (!readFileSync(logFile, 'utf8').includes(READY_LINE)) {
    if (ended() || performance.now() > deadline) {
      throw new Error(`Kafka did not start, see ${logFile}`);
    }
    await delay(50);
  }
};

/** Kafka: KAFKA_BROKERS in plain text, and two listeners with TLS and a login. */
export const kafka: Engine = {
  name: 'Kafka',
  available,
  start: async (folder, log) => {
    await fetchJars(log);
    await format(folder);
    const logFile = join(folder, 'broker.log');
    const output = openSync(logFile, 'w');
    const args = [...JVM, ...classPath, 'kafka.Kafka', join(folder, 'server.properties')];
    const child = spawn('java', args, { detached: true, stdio: ['ignore', output, output] });
    closeSync(output);
    child.unref();
    try {
      await untilReady(logFile, () => child.exitCode !== null || child.signalCode !== null);
    } catch (error) {
      child.kill('SIGKILL');
      throw error;
    }
    return { variables: variablesIn(folder), pid: child.pid ?? 0 };
  },
};
