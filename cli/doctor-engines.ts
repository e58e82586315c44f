/** Reports of the engines for `payments doctor`, each called as the service would call it, with the likely cause of a failure. */
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { within } from '../shared/runtime/back-off.ts';
import type { Config } from '../shared/runtime/config.ts';
import { firstLineOf } from '../shared/runtime/error-text.ts';
import { createLogger } from '../shared/runtime/log.ts';
import { withoutSecrets } from '../shared/runtime/settings/effective.ts';
import { unchangedAddress } from './stopped-folder.ts';

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

const addressOf = (text: string, byDefault: number): Address => {
  const [, host = text, port] = /^\[?(.*?)\]?(?::(\d*))?$/.exec(text) ?? [];
  return { host, port: Number(port || byDefault) };
};

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
  const down = (cause: string) => ({ ...found, state: 'down', fault: true, cause });
  const [closed, ...others] = await Promise.all(addresses.map(connectTo));
  if (closed !== undefined && others.every((cause) => cause !== undefined)) return down(closed);
  try {
    const late = () => new Error(`no response within ${PROBE_MS_MAX} ms`);
    await within(PROBE_MS_MAX, call(), late);
    return { ...found, state: 'up', fault: false };
  } catch (error) {
    return down(`it listens, but: ${lineOf(error)}; ${hint}`);
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

const openAndPing = async (
  opening: Promise<{ ping(): Promise<unknown>; close(): unknown }>,
): Promise<void> => {
  const opened = await opening;
  await opened.ping().finally(() => void opened.close());
};

const eventStore = ({ eventStoreDbUrl: url, dataDir }: Config): Probe | EngineFinding =>
  url === undefined
    ? lookAtFile('event store', dataDir, 'events.sqlite')
    : {
        engine: 'event store',
        place: withoutSecrets(url),
        addresses: addressesOf(url, 2113),
        call: async () => {
          const { openEventStoreDb } = await import(
            '../shared/event-store/eventstoredb/event-store.ts'
          );
          const { log } = createLogger({ level: 'silent', destination: 'stdout' });
          await openAndPing(openEventStoreDb({ url, logger: log }));
        },
        hint: 'docs/eventstoredb.md shows the address for each kind of server',
      };

const readModels = ({ mongoUrl: url, dataDir }: Config): Probe | EngineFinding =>
  url === undefined
    ? lookAtFile('read models', dataDir, 'read-models.sqlite')
    : {
        engine: 'read models',
        place: withoutSecrets(url),
        addresses: addressesOf(url, 27017),
        call: async () => {
          const { openMongoReadModels } = await import(
            '../shared/read-models/mongodb/read-models.ts'
          );
          await openAndPing(openMongoReadModels({ url, secrets: ['none: only a ping'] }));
        },
        hint: 'are user and password right, and is replicaSet in the address that of the server?',
      };

const kafka = ({ kafka: set }: Config): Probe | EngineFinding => {
  if (set === undefined) {
    const cause = 'nothing is published; set KAFKA_BROKERS to the brokers to publish';
    return withoutFault('Kafka', 'none', 'not set', cause);
  }
  return {
    engine: 'Kafka',
    place: set.brokers.join(','),
    addresses: set.brokers.map((broker) => addressOf(broker, 9092)),
    call: async () => (await import('../projector/event-feed/kafka-connection.ts')).pingKafka(set),
    hint: 'is this the listener that KAFKA_TLS and KAFKA_SASL_MECHANISM are for?',
  };
};

const provider = (config: Config): Probe | EngineFinding => {
  const { stripe } = config;
  const url = stripe?.url ?? config.provider.url;
  if (url === undefined) {
    const cause = 'simulated, moves no money; set PROVIDER_URL to use a real one';
    return withoutFault('provider', 'none', 'in the service', cause);
  }
  const { hostname, port, protocol } = new URL(url);
  return {
    ...(stripe && {
      cause: `Stripe in ${stripe.live ? 'live mode, moves money' : 'test mode, moves no money'}`,
    }),
    engine: 'provider',
    place: withoutSecrets(url),
    addresses: [addressOf(`${hostname}:${port}`, protocol === 'https:' ? 443 : 80)],
    call: async () => {
      const { openOuterProvider } = await import('../command-api/open-provider.ts');
      const opened = openOuterProvider(config);
      // Stripe's ledger from now on is short.
      const reading = stripe
        ? opened.ledgerEnd(`${Math.floor(Date.now() / 1_000)}.`)
        : opened.ledger(null, 1);
      const looking = opened.endedAuthorizations(Date.now());
      const [, ended] = await Promise.all([reading, looking]).finally(() => void opened.close());
      if (ended.outcome === 'UNKNOWN') throw new Error(`events cannot be read: ${ended.reason}`);
    },
    hint: stripe
      ? 'is STRIPE_SECRET_KEY a key that is not rolled, with the permissions of docs/providers/stripe.md, and are the accounts of MERCHANTS_FILE its own?'
      : 'is PROVIDER_TOKEN its token, and does it speak docs/provider.md?',
  };
};

export const lookAtEngines = (config: Config): Promise<EngineFinding[]> =>
  Promise.all(
    [eventStore, readModels, kafka, provider].map(async (of) => {
      const found = of(config);
      return 'call' in found ? probe(found) : found;
    }),
  );
