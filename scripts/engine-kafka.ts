/**
 * Kafka's own broker from its published jars: one node in KRaft mode on loopback. The jars are
 * fetched once by Maven and kept in the user's cache.
 */
import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Engine } from './engine.ts';

const POM = join(import.meta.dirname, 'engine-kafka', 'pom.xml');
const VERSION = /<artifactId>kafka_2\.13<.*\n\s*<version>(.+)</.exec(
  readFileSync(POM, 'utf8'),
)?.[1];
const LIBS = join(homedir(), '.cache', 'payments-engines', `kafka-${VERSION}`);
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

const freePorts = async (count: number): Promise<number[]> => {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'));
  await Promise.all(servers.map((server) => new Promise((done) => server.once('listening', done))));
  const ports = servers.map((server) => Number(Object(server.address()).port));
  await Promise.all(servers.map((server) => new Promise((done) => server.close(done))));
  return ports;
};

const settingsOf = (folder: string, port: number, controllerPort: number): string =>
  [
    'process.roles=broker,controller',
    'node.id=1',
    `controller.quorum.voters=1@127.0.0.1:${controllerPort}`,
    `listeners=PLAINTEXT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controllerPort}`,
    `advertised.listeners=PLAINTEXT://127.0.0.1:${port}`,
    'controller.listener.names=CONTROLLER',
    'listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT',
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
  const [port = 0, controllerPort = 0] = await freePorts(2);
  const draft = `${settings}.draft`;
  writeFileSync(draft, settingsOf(folder, port, controllerPort));
  const args = [...classPath, 'kafka.tools.StorageTool', 'format', '-t', clusterId(), '-c', draft];
  await run('java', args, READY_MS_MAX);
  await rename(draft, settings);
};

const addressIn = (folder: string): string => {
  const settings = readFileSync(join(folder, 'server.properties'), 'utf8');
  return /^advertised\.listeners=PLAINTEXT:\/\/(.+)$/m.exec(settings)?.[1] ?? '';
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

/** Kafka, which gives a value for KAFKA_BROKERS. */
export const kafka: Engine = {
  name: 'Kafka',
  variable: 'KAFKA_BROKERS',
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
    return { value: addressIn(folder), pid: child.pid ?? 0 };
  },
};
