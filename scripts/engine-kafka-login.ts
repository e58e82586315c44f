/**
 * The listeners of the broker that want TLS and a login: one with a self-signed certificate, and one
 * whose certificate has expired. Keys are made anew for each data folder, with Java's keytool.
 */
import { join } from 'node:path';

const USER = 'payments';
/** The password of a broker that only this machine reaches, and only while it runs. */
const PASSWORD = 'a password of the tests';
const MECHANISMS = ['SCRAM-SHA-256', 'SCRAM-SHA-512'];

/** Name of a listener, and when its certificate begins and for how long it holds. */
const LISTENERS = [
  { name: 'LOGIN', begins: '-1d', days: 3650 },
  { name: 'EXPIRED', begins: '-10d', days: 5 },
] as const;

type Ports = { login: number; expired: number };
type Run = (command: string, args: string[]) => Promise<void>;

const keyStore = (folder: string, name: string): string => join(folder, `${name}.p12`);
const certificate = (folder: string, name: string): string => join(folder, `${name}.pem`);

const makeKey = async (
  run: Run,
  folder: string,
  { name, begins, days }: (typeof LISTENERS)[number],
): Promise<void> => {
  const store = ['-keystore', keyStore(folder, name), '-storepass', PASSWORD, '-alias', 'broker'];
  const form = ['-keyalg', 'EC', '-groupname', 'secp256r1', '-storetype', 'PKCS12'];
  const valid = ['-startdate', begins, '-validity', String(days)];
  const named = ['-dname', 'CN=localhost', '-ext', 'SAN=dns:localhost,ip:127.0.0.1'];
  await run('keytool', ['-genkeypair', ...store, ...form, ...valid, ...named]);
  await run('keytool', ['-exportcert', '-rfc', ...store, '-file', certificate(folder, name)]);
};

/** Makes the keys and certificates of both listeners. Throws Error where keytool fails. */
export const makeKeys = async (run: Run, folder: string): Promise<void> => {
  for (const listener of LISTENERS) await makeKey(run, folder, listener);
};

/** The addresses of the listeners, as Kafka's settings write them. */
export const loginListeners = ({ login, expired }: Ports): string =>
  `LOGIN://127.0.0.1:${login},EXPIRED://127.0.0.1:${expired}`;

/** Their protocol, as Kafka's settings write it. */
export const LOGIN_PROTOCOLS = 'LOGIN:SASL_SSL,EXPIRED:SASL_SSL';

/** The lines of the broker's settings for both listeners. */
export const loginSettings = (folder: string): string[] => [
  `sasl.enabled.mechanisms=${MECHANISMS.join(',')}`,
  ...LISTENERS.flatMap(({ name }) => {
    const prefix = `listener.name.${name.toLowerCase()}`;
    const scram = 'org.apache.kafka.common.security.scram.ScramLoginModule required;';
    return [
      `${prefix}.ssl.keystore.type=PKCS12`,
      `${prefix}.ssl.keystore.location=${keyStore(folder, name)}`,
      `${prefix}.ssl.keystore.password=${PASSWORD}`,
      ...MECHANISMS.map((one) => `${prefix}.${one.toLowerCase()}.sasl.jaas.config=${scram}`),
    ];
  }),
];

/** What Kafka's format tool needs so that the user exists from the first start. */
export const loginUsers = (): string[] =>
  MECHANISMS.flatMap((one) => ['--add-scram', `${one}=[name=${USER},password=${PASSWORD}]`]);

/** The variables that tests find both listeners by. */
export const loginVariables = (folder: string, { login, expired }: Ports) => ({
  KAFKA_LOGIN_BROKERS: `127.0.0.1:${login}`,
  KAFKA_EXPIRED_BROKERS: `127.0.0.1:${expired}`,
  KAFKA_LOGIN_FOLDER: folder,
  KAFKA_LOGIN_USERNAME: USER,
  KAFKA_LOGIN_PASSWORD: PASSWORD,
});
