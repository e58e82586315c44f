/**
 * Kafka's own broker from its published jars, which Maven fetches once: one node in KRaft mode, with a
 * listener in plain text and two that want TLS and a login, with self-signed certificates of which
 * one has expired. Each data folder gets keys by Java's keytool.
 */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CACHE, type Engine, lackOf, makeOnce, portsOf, run, startServer } from './engine.ts';

const POM = join(import.meta.dirname, 'kafka.pom.xml');
const VERSION = /kafka_2\.13<.*\n\s*<version>(.+)</.exec(readFileSync(POM, 'utf8'))?.[1];
const LIBS = join(CACHE, `kafka-${VERSION}`);
const JAVA = ['java', '-Xmx512m', '-cp', join(LIBS, '*')];
const COPY = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies';
/** Any 16 bytes: no other broker meets this one. */
const CLUSTER_ID = 'a-broker-of-the-testsA';

const USER = 'payments';
/** The password of a broker that only this machine reaches, and only while it runs. */
const PASSWORD = 'a password of the tests';
const MECHANISMS = ['SCRAM-SHA-256', 'SCRAM-SHA-512'];
/** Each listener with TLS, and when its certificate begins and for how long it holds. */
const TLS_LISTENERS = [
  { name: 'LOGIN', begins: '-1d', days: '3650' },
  { name: 'EXPIRED', begins: '-10d', days: '5' },
];

const makeKeys = async (folder: string): Promise<void> => {
  for (const { name, begins, days } of TLS_LISTENERS) {
    const keys = ['-keystore', join(folder, `${name}.p12`), '-storepass', PASSWORD];
    const named = ['-dname', 'CN=localhost', '-ext', 'SAN=dns:localhost,ip:127.0.0.1'];
    const form = ['-keyalg', 'EC', '-startdate', begins, '-validity', days];
    await run('keytool', ['-genkeypair', ...keys, ...named, ...form]);
    await run('keytool', ['-exportcert', '-rfc', ...keys, '-file', join(folder, `${name}.pem`)]);
  }
};

const tlsSettings = (folder: string, name: string): string[] => {
  const listener = `listener.name.${name.toLowerCase()}`;
  const scram = 'org.apache.kafka.common.security.scram.ScramLoginModule required;';
  return [
    `${listener}.ssl.keystore.type=PKCS12`,
    `${listener}.ssl.keystore.location=${join(folder, `${name}.p12`)}`,
    `${listener}.ssl.keystore.password=${PASSWORD}`,
    ...MECHANISMS.map((one) => `${listener}.${one.toLowerCase()}.sasl.jaas.config=${scram}`),
  ];
};

const settingsOf = (folder: string, ports: readonly number[]): string => {
  const [plain, controller, login, expired] = ports.map((port) => `127.0.0.1:${port}`);
  const addresses = `PLAINTEXT://${plain},LOGIN://${login},EXPIRED://${expired}`;
  const protocols = 'PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,LOGIN:SASL_SSL,EXPIRED:SASL_SSL';
  return [
    'process.roles=broker,controller',
    'node.id=1',
    `controller.quorum.voters=1@${controller}`,
    `listeners=${addresses},CONTROLLER://${controller}`,
    `advertised.listeners=${addresses}`,
    `listener.security.protocol.map=${protocols}`,
    'inter.broker.listener.name=PLAINTEXT',
    'controller.listener.names=CONTROLLER',
    `sasl.enabled.mechanisms=${MECHANISMS.join(',')}`,
    ...TLS_LISTENERS.flatMap(({ name }) => tlsSettings(folder, name)),
    `log.dirs=${join(folder, 'log')}`,
    'auto.create.topics.enable=false',
    'offsets.topic.num.partitions=1',
    'offsets.topic.replication.factor=1',
    'transaction.state.log.num.partitions=1',
    'transaction.state.log.replication.factor=1',
    'transaction.state.log.min.isr=1',
    'group.initial.rebalance.delay.ms=0',
  ].join('\n');
};

/** Makes a data folder, unless it is whole and has these settings. */
const format = async (folder: string, settings: string): Promise<void> => {
  const isWhole = existsSync(settings);
  if (isWhole && readFileSync(settings, 'utf8') === settingsOf(folder, await portsOf(folder, 4)))
    return;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  await makeKeys(folder);
  const text = settingsOf(folder, await portsOf(folder, 4));
  const draft = `${settings}.draft`;
  writeFileSync(draft, text);
  const user = `[name=${USER},password=${PASSWORD}]`;
  const users = MECHANISMS.flatMap((one) => ['--add-scram', `${one}=${user}`]);
  const [java = '', ...args] = [...JAVA, 'kafka.tools.StorageTool', 'format'];
  await run(java, [...args, '-t', CLUSTER_ID, '-c', draft, ...users]);
  writeFileSync(settings, text);
};

/** Kafka: KAFKA_BROKERS in plain text, KAFKA_LOGIN_BROKERS and KAFKA_EXPIRED_BROKERS with TLS. */
export const kafka: Engine = {
  name: 'Kafka',
  available: () => lackOf('java', 'keytool', 'mvn'),
  start: async (folder, log) => {
    await makeOnce(LIBS, (fresh) => {
      log(`fetching the jars of Kafka ${VERSION}, once`);
      const options = ['-DincludeScope=runtime', `-DoutputDirectory=${fresh}`];
      return run('mvn', ['-B', '-q', '-f', POM, COPY, ...options]);
    });
    const settings = join(folder, 'server.properties');
    await format(folder, settings);
    const pid = await startServer(
      folder,
      [...JAVA, 'kafka.Kafka', settings],
      'Kafka Server started',
    );
    const [plain, , login, expired] = await portsOf(folder, 4);
    const variables = {
      KAFKA_VERSION: VERSION ?? 'unknown',
      KAFKA_BROKERS: `127.0.0.1:${plain}`,
      KAFKA_LOGIN_BROKERS: `127.0.0.1:${login}`,
      KAFKA_EXPIRED_BROKERS: `127.0.0.1:${expired}`,
      KAFKA_LOGIN_FOLDER: folder,
      KAFKA_LOGIN_USERNAME: USER,
      KAFKA_LOGIN_PASSWORD: PASSWORD,
    };
    return { variables, pid };
  },
};
