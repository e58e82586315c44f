/** Reports of the engines for `payments doctor`, each called as the service would call it, with the likely cause of a failure. */
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Provider } from '../command-api/provider/port.ts';
import { within } from '../shared/runtime/back-off.ts';
import type { Config } from '../shared/runtime/config.ts';
import { firstLineOf } from '../shared/runtime/error-text.ts';
import { createLogger } from '../shared/runtime/log.ts';
import { withoutSecrets } from '../shared/runtime/settings/effective.ts';
import { unchangedAddress } from './stopped-file.ts';

/**
 * Of one engine, or of the provider. `place` is without secrets; `state` is `up`, `down`, `not set`, `empty`,
 * `in the service`, or a state of /health/ready; `fault`: it is set and cannot be used.
 */
export type EngineFinding = {
  engine: string;
  place: string;
  state: string;
  fault: boolean;
  cause?: string;
};

const CONNECT_MS_MAX = 2_000;
const PROBE_MS_MAX = 8_000;

/** Where several servers failed, the first one's error. */
const lineOf = (error: unknown): string => {
  const [first] = error instanceof AggregateError ? error.errors : [error];
  return withoutSecrets(firstLineOf(first));
};

const CAUSES: Record<string, string> = {
  ECONNREFUSED: 'nothing listens there: is the server started, and is this its port?',
  ENOTFOUND: 'no host has this name: is it misspelt, or a name of another network?',
  EAI_AGAIN: 'names cannot be looked up: is this machine on the network?',
  EHOSTUNREACH: 'no route leads to this host: is it running, and on this network?',
  ENETUNREACH: 'no route leads to this network: is this machine on it?',
  ECONNRESET: 'the connection is closed at once: is it the port of another server, or one for TLS?',
};
const SILENT = 'no connection in time: is a firewall in between, or the address wrong?';

type Address = { host: string; port: number };

/** Undefined once connected, else the likely cause of the failure. */
const connectTo = async ({ host, port }: Address): Promise<string | undefined> => {
  const socket = connect({ host, port });
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(CONNECT_MS_MAX) });
    return undefined;
  } catch (error) {
    const { name, code, errors } = Object(error);
    const known = code ?? errors?.[0]?.code ?? 'unknown';
    return `${host}:${port}: ${name === 'AbortError' ? SILENT : (CAUSES[known] ?? known)}`;
  } finally {
    socket.destroy();
  }
};

const connectToAny = async (addresses: readonly Address[]): Promise<string | undefined> => {
  const causes = await Promise.all(addresses.map(connectTo));
  return causes.some((cause) => cause === undefined) ? undefined : causes[0];
};

const addressOf = (text: string, byDefault: number): Address => {
  const [, host = text, port] = /^\[?(.*?)\]?(?::(\d+))?$/.exec(text) ?? [];
  return { host, port: Number(port ?? byDefault) };
};

/** None for a scheme whose hosts come from DNS. */
const addressesOf = (url: string, byDefault: number): Address[] => {
  if (/^[a-z]+\+(srv|discover):/i.test(url)) return [];
  const hosts = url.replace(/^[a-z+]+:\/\/(?:[^/?#]*@)?/i, '').split(/[/?#]/)[0] ?? '';
  return hosts.split(',').map((host) => addressOf(host, byDefault));
};

/** `call` throws when the engine cannot be used; `hint` is the likely cause where it listens all the same. */
type Probe = Pick<EngineFinding, 'engine' | 'place' | 'cause'> & {
  addresses: readonly Address[];
  call: () => Promise<unknown>;
  hint: string;
};

const probe = async ({ addresses, call, hint, ...found }: Probe): Promise<EngineFinding> => {
  const closed = await connectToAny(addresses);
  if (closed !== undefined) return { ...found, state: 'down', fault: true, cause: closed };
  try {
    const late = () => new Error(`no response within ${PROBE_MS_MAX} ms`);
    await within(PROBE_MS_MAX, call(), late);
    return { ...found, state: 'up', fault: false };
  } catch (error) {
    const cause = `it listens, but: ${lineOf(error)}; ${hint}`;
    return { ...found, state: 'down', fault: true, cause };
  }
};

const withoutFault = (engine: string, place: string, state: string, cause: string) => {
  return { engine, place, state, fault: false, cause };
};

const lookAtFile = (engine: string, folder: string, name: string): EngineFinding => {
  const place = `SQLite, ${name}`;
  const file = join(folder, name);
  if (!existsSync(file))
    return withoutFault(engine, place, 'empty', 'the first start makes it: npm start');
  try {
    // Otherwise SQLite makes files beside it.
    const database = new DatabaseSync(unchangedAddress(file), { readOnly: true });
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
  return probe({
    engine: 'event store',
    place: withoutSecrets(url),
    addresses: addressesOf(url, 2113),
    call: async () => {
      const { openEventStoreDb } = await import(
        '../shared/event-store/eventstoredb/event-store.ts'
      );
      const { log } = createLogger({ level: 'silent', destination: 'stdout' });
      const store = await openEventStoreDb({ url, logger: log });
      await store.ping().finally(() => void store.close());
    },
    hint: 'docs/eventstoredb.md shows the address for each kind of server',
  });
};

const readModels = async ({ mongoUrl: url, dataDir }: Config): Promise<EngineFinding> => {
  if (url === undefined) return lookAtFile('read models', dataDir, 'read-models.sqlite');
  return probe({
    engine: 'read models',
    place: withoutSecrets(url),
    addresses: addressesOf(url, 27017),
    call: async () => {
      const { openMongoReadModels } = await import('../shared/read-models/mongodb/read-models.ts');
      const readModels = await openMongoReadModels({ url, secrets: ['none: only a ping'] });
      await readModels.ping().finally(() => void readModels.close());
    },
    hint: 'are user and password right, and is replicaSet in the address that of the server?',
  });
};

const kafka = async ({ kafka: set }: Config): Promise<EngineFinding> => {
  if (set === undefined) {
    const cause = 'nothing is published; set KAFKA_BROKERS to the brokers to publish';
    return withoutFault('Kafka', 'none', 'not set', cause);
  }
  return probe({
    engine: 'Kafka',
    place: set.brokers.join(','),
    addresses: set.brokers.map((broker) => addressOf(broker, 9092)),
    call: async () => {
      const { pingKafka } = await import('../projector/event-feed/kafka-connection.ts');
      await pingKafka(set);
    },
    hint: 'is this the listener that KAFKA_TLS and KAFKA_SASL_MECHANISM are for?',
  });
};

const providerProbe = (config: Config, url: string): Probe => {
  const { stripe } = config;
  const { hostname, port, protocol } = new URL(url);
  const callOn = async <T>(call: (opened: Provider) => Promise<T>): Promise<T> => {
    const { openOuterProvider } = await import('../command-api/open-provider.ts');
    const opened = openOuterProvider(config);
    return call(opened).finally(() => void opened.close());
  };
  const to = {
    engine: 'provider',
    place: withoutSecrets(url),
    addresses: [addressOf(`${hostname}:${port || (protocol === 'https:' ? 443 : 80)}`, 443)],
  };
  if (stripe === undefined) {
    const hint = 'is PROVIDER_TOKEN its token, and does it speak docs/provider.md?';
    return { ...to, hint, call: () => callOn((opened) => opened.ledger(null, 1)) };
  }
  return {
    cause: stripe.live ? 'Stripe in live mode, moves money' : 'Stripe in test mode, moves no money',
    ...to,
    hint: 'is STRIPE_SECRET_KEY a key that is not rolled, and are the accounts of MERCHANTS_FILE its own?',
    // The ledger from now on is short.
    call: () => callOn((opened) => opened.ledgerEnd(`${Math.floor(Date.now() / 1_000)}.`)),
  };
};

const provider = async (config: Config): Promise<EngineFinding> => {
  const url = config.stripe?.url ?? config.provider.url;
  if (url === undefined) {
    const cause = 'simulated, moves no money; set PROVIDER_URL to use a real one';
    return withoutFault('provider', 'none', 'in the service', cause);
  }
  return probe(providerProbe(config, url));
};

export const lookAtEngines = (config: Config): Promise<EngineFinding[]> =>
  Promise.all([eventStore(config), readModels(config), kafka(config), provider(config)]);
