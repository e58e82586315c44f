/**
 * What `payments doctor` says of the engines: each is asked as the service would ask it, and where
 * it does not answer the likely cause is named. A server's client is loaded only where one is set.
 */
import { existsSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Config } from '../shared/runtime/config.ts';
import { firstLineOf } from '../shared/runtime/error-text.ts';
import { createLogger } from '../shared/runtime/log.ts';
import { openClient } from './client.ts';
import type { DataFolderFinding } from './doctor-data.ts';
import { withoutSecrets } from './doctor-settings.ts';

export type EngineFinding = {
  engine: string;
  /** Where it is, without secrets. */
  place: string;
  state: 'up' | 'down' | 'not ready' | 'not set' | 'not running' | 'empty' | 'in the service';
  /** It is set, and cannot be used. */
  fault: boolean;
  /** Likely cause and what to do, in words. */
  cause?: string;
};

const CONNECT_MS_MAX = 2_000;
const ASK_MS_MAX = 8_000;

const within = async <T>(ms: number, step: Promise<T>): Promise<T> => {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`no answer within ${ms} ms`)), ms);
  return Promise.race([step, late.promise]).finally(() => clearTimeout(timer));
};

/** One line; of several servers that all failed, what the first one said. */
const lineOf = (error: unknown): string => {
  const [first] = error instanceof AggregateError ? error.errors : [error];
  return withoutSecrets(firstLineOf(first));
};

const CAUSES: Record<string, string> = {
  ECONNREFUSED: 'nothing listens there: is the server started, and is this its port?',
  ENOTFOUND: 'no host has this name: is it misspelt, or a name of another network?',
  EAI_AGAIN: 'names cannot be looked up: is this machine on the network?',
  EHOSTUNREACH: 'no way leads to this host: is it on, and on this network?',
  ENETUNREACH: 'no way leads to this network: is this machine on it?',
  ECONNRESET: 'it hangs up at once: is this the port of something else, or one that wants TLS?',
};
const SILENT = 'it takes no connection in time: a firewall between, or a wrong address?';

type Address = { host: string; port: number };

/** Undefined once a connection stands, else the likely cause that none does. */
const connectTo = ({ host, port }: Address): Promise<string | undefined> => {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const socket = connect({ host, port });
  const timer = setTimeout(() => resolve(`${host}:${port}: ${SILENT}`), CONNECT_MS_MAX);
  socket.once('connect', () => resolve(undefined));
  socket.once('error', (error: NodeJS.ErrnoException & { errors?: NodeJS.ErrnoException[] }) => {
    const code = error.code ?? error.errors?.[0]?.code ?? 'unknown';
    resolve(`${host}:${port}: ${CAUSES[code] ?? code}`);
  });
  return promise.finally(() => {
    clearTimeout(timer);
    socket.destroy();
  });
};

/** The first cause where no address takes a connection: of several servers one is enough. */
const connectToAny = async (addresses: readonly Address[]): Promise<string | undefined> => {
  const causes = await Promise.all(addresses.map(connectTo));
  return causes.some((cause) => cause === undefined) ? undefined : causes[0];
};

const addressOf = (text: string, byDefault: number): Address => {
  const [, host = text, port] = /^\[?(.*?)\]?(?::(\d+))?$/.exec(text) ?? [];
  return { host, port: Number(port ?? byDefault) };
};

/** The hosts of an address that may name several; none where its scheme has them looked up. */
const addressesOf = (url: string, byDefault: number): Address[] => {
  if (/^[a-z]+\+(srv|discover):/i.test(url)) return [];
  const hosts = url.replace(/^[a-z+]+:\/\/(?:[^/?#]*@)?/i, '').split(/[/?#]/)[0] ?? '';
  return hosts.split(',').map((host) => addressOf(host, byDefault));
};

type Requested = {
  engine: string;
  place: string;
  addresses: readonly Address[];
  ask: () => Promise<unknown>;
  /** What is likely where it listens and yet does not answer as it should. */
  hint: string;
};

const look = async ({ engine, place, addresses, ask, hint }: Requested): Promise<EngineFinding> => {
  const down = (cause: string) => ({ engine, place, state: 'down' as const, fault: true, cause });
  const closed = await connectToAny(addresses);
  if (closed !== undefined) return down(closed);
  try {
    await within(ASK_MS_MAX, ask());
    return { engine, place, state: 'up', fault: false };
  } catch (error) {
    return down(`it listens, but: ${lineOf(error)}; ${hint}`);
  }
};

const lookAtFile = (engine: string, folder: string, name: string): EngineFinding => {
  const place = `SQLite, ${name}`;
  const file = join(folder, name);
  if (!existsSync(file)) {
    const cause = 'the first start makes it: npm start';
    return { engine, place, state: 'empty', fault: false, cause };
  }
  try {
    const database = new DatabaseSync(file, { readOnly: true, timeout: CONNECT_MS_MAX });
    database.prepare('SELECT count(*) FROM sqlite_schema').get();
    database.close();
    return { engine, place, state: 'up', fault: false };
  } catch (error) {
    const cause = `${lineOf(error)}; see "A damaged event log" in docs/operations.md`;
    return { engine, place, state: 'down', fault: true, cause };
  }
};

const eventStore = async ({ eventStoreDbUrl: url, dataDir }: Config): Promise<EngineFinding> => {
  if (url === undefined) return lookAtFile('event store', dataDir, 'events.sqlite');
  return look({
    engine: 'event store',
    place: withoutSecrets(url),
    addresses: addressesOf(url, 2113),
    ask: async () => {
      const { openEventStoreDb } = await import(
        '../shared/event-store/eventstoredb/event-store.ts'
      );
      const { log } = createLogger({ level: 'silent', destination: 'stdout' });
      const store = await openEventStoreDb({ url, logger: log });
      await store.ping().finally(() => void store.close());
    },
    hint: 'does the server use TLS? Without it the address must end in ?tls=false; with it, are user and password right?',
  });
};

const readModels = async ({ mongoUrl: url, dataDir }: Config): Promise<EngineFinding> => {
  if (url === undefined) return lookAtFile('read models', dataDir, 'read-models.sqlite');
  return look({
    engine: 'read models',
    place: withoutSecrets(url),
    addresses: addressesOf(url, 27017),
    ask: async () => {
      const { openMongoReadModels } = await import('../shared/read-models/mongodb/read-models.ts');
      const readModels = await openMongoReadModels({ url });
      await readModels.ping().finally(() => void readModels.close());
    },
    hint: 'are user and password right, and is replicaSet in the address that of the server?',
  });
};

/** Kafka's question for its versions, with the number 1, and an answer to that very question. */
const VERSIONS = Buffer.from([0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 255, 255]);

const askKafka = ({ host, port }: Address): Promise<void> => {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const socket = connect({ host, port }, () => void socket.write(VERSIONS));
  let got = Buffer.alloc(0);
  socket.on('data', (part) => {
    got = Buffer.concat([got, part]);
    if (got.length < 8) return;
    if (got.readInt32BE(4) === 1) resolve();
    else reject(new Error('what it answers is not Kafka'));
  });
  socket.once('error', reject);
  socket.once('close', () => reject(new Error('it hangs up without an answer')));
  return promise.finally(() => socket.destroy());
};

const kafka = async ({ kafka: set }: Config): Promise<EngineFinding> => {
  if (set === undefined) {
    const cause = 'nothing is published; KAFKA_BROKERS would name the brokers';
    return { engine: 'Kafka', place: 'none', state: 'not set', fault: false, cause };
  }
  const addresses = set.brokers.map((broker) => addressOf(broker, 9092));
  return look({
    engine: 'Kafka',
    place: set.brokers.join(','),
    addresses,
    ask: () => Promise.any(addresses.map(askKafka)),
    hint: 'is this its plain listener, and not the one for TLS?',
  });
};

const provider = async ({ provider: set }: Config): Promise<EngineFinding> => {
  const { url, token, connectTimeoutMs, timeoutMs } = set;
  if (url === undefined) {
    const cause = 'simulated: it moves no money; PROVIDER_URL would name a real one';
    return { engine: 'provider', place: 'none', state: 'in the service', fault: false, cause };
  }
  const { hostname, port, protocol } = new URL(url);
  return look({
    engine: 'provider',
    place: withoutSecrets(url),
    addresses: [addressOf(`${hostname}:${port || (protocol === 'https:' ? 443 : 80)}`, 443)],
    ask: async () => {
      const { httpProvider } = await import('../command-api/provider/http/provider.ts');
      const opened = httpProvider({ url, token, connectTimeoutMs, timeoutMs });
      await opened.ledger(0, 1).finally(() => void opened.close());
    },
    hint: 'is PROVIDER_TOKEN its token, and does it speak docs/provider.md?',
  });
};

type Ready = { status?: string; details?: string[] };

const whyNoService = (held: boolean): string =>
  held
    ? 'a service holds the data folder, so it listens elsewhere: do HOST and PORT here differ from its own?'
    : 'start it: npm start, or set PAYMENTS_URL';

const service = async ({ held }: DataFolderFinding): Promise<EngineFinding> => {
  const { url } = await openClient();
  const isSet = (process.env.PAYMENTS_URL ?? '').trim() !== '';
  const found = { engine: 'service', place: withoutSecrets(url) };
  try {
    const response = await fetch(`${url}/health/ready`, {
      signal: AbortSignal.timeout(ASK_MS_MAX),
    });
    const { details = [] } = (await response.json()) as Ready;
    if (response.ok) return { ...found, state: 'up', fault: false };
    return { ...found, state: 'not ready', fault: true, cause: details.join(', ') };
  } catch {
    const closed = isSet
      ? await connectToAny(addressesOf(url, url.startsWith('https') ? 443 : 80))
      : undefined;
    const cause = closed ?? whyNoService(held);
    return { ...found, state: isSet ? 'down' : 'not running', fault: isSet, cause };
  }
};

/** Asks all of them at once. Throws CommandFailed where PAYMENTS_URL is no address. */
export const lookAtEngines = (
  config: Config,
  dataFolder: DataFolderFinding,
): Promise<EngineFinding[]> =>
  Promise.all([
    eventStore(config),
    readModels(config),
    kafka(config),
    provider(config),
    service(dataFolder),
  ]);
