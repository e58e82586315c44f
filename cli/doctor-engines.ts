/** Reports of the engines for `payments doctor`, called as the service calls it, with the likely cause of a failure. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { ServerFacts } from '../shared/event-store/eventstoredb/server-facts.ts';
import { within } from '../shared/runtime/back-off.ts';
import type { Config } from '../shared/runtime/config.ts';
import { firstLineOf } from '../shared/runtime/error-text.ts';
import { withoutSecrets } from '../shared/runtime/settings/effective.ts';
import { openServer } from './keys.ts';
import { textsIn } from './output.ts';
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

const PROBE_MS_MAX = 8_000;

const CAUSES: Record<string, string> = {
  ECONNREFUSED: 'nothing listens there: is the server started, and is this its port?',
  ENOTFOUND: 'no host has this name: is it misspelt, or a name of another network?',
  EAI_AGAIN: 'names cannot be looked up: is this machine on the network?',
  EHOSTUNREACH: 'no route leads to this host: is it running, and on this network?',
  ENETUNREACH: 'no route leads to this network: is this machine on it?',
  ECONNRESET: 'the connection is closed at once: is it the port of another server, or one for TLS?',
};

type Probe = Pick<EngineFinding, 'engine' | 'place' | 'cause'> & {
  call: () => Promise<unknown>;
  /** The likely cause where the error names none. */
  hint: string;
};

const probe = async ({ call, hint, ...found }: Probe): Promise<EngineFinding> => {
  try {
    const late = () => new Error(`no response within ${PROBE_MS_MAX} ms`);
    await within(PROBE_MS_MAX, call(), late);
    return { ...found, state: 'up', fault: false };
  } catch (error) {
    const [first] = error instanceof AggregateError ? error.errors : [error];
    const line = withoutSecrets(firstLineOf(first));
    const [code = ''] = /\bE[A-Z_]{5,}\b/.exec(line) ?? [];
    return { ...found, state: 'down', fault: true, cause: `${line}; ${CAUSES[code] ?? hint}` };
  }
};

const lookAtFile = async (engine: string, folder: string, name: string): Promise<EngineFinding> => {
  const found = { engine, place: `SQLite, ${name}` };
  const file = join(folder, name);
  if (!existsSync(file))
    return { ...found, state: 'empty', fault: false, cause: 'the first start makes it: npm start' };
  return probe({
    ...found,
    call: async () => {
      // Otherwise SQLite makes more files in the folder.
      using database = new DatabaseSync(unchangedAddress(file), { readOnly: true });
      database.prepare('SELECT count(*) FROM sqlite_schema').get();
    },
    hint: 'see "A damaged event log" in docs/operations.md',
  });
};

const eventStore = async ({ eventStoreDbUrl: url, dataDir }: Config): Promise<EngineFinding> => {
  if (url === undefined) return lookAtFile('event store', dataDir, 'events.sqlite');
  return probe({
    engine: 'event store',
    place: withoutSecrets(url),
    call: async () => {
      const opened = await openServer(url);
      await opened.ping().finally(() => void opened.close());
    },
    hint: 'docs/eventstoredb.md shows the address for each kind of server',
  });
};

const readModels = async ({ mongoUrl: url, dataDir }: Config): Promise<EngineFinding> => {
  if (url === undefined) return lookAtFile('read models', dataDir, 'read-models.sqlite');
  return probe({
    engine: 'read models',
    place: withoutSecrets(url),
    call: async () => {
      const { openMongoReadModels } = await import('../shared/read-models/mongodb/read-models.ts');
      const opened = await openMongoReadModels({ url, secrets: ['none: only a read'] });
      await opened.filledTo().finally(() => void opened.close());
    },
    hint: 'are user and password right, and is replicaSet in the address that of the server?',
  });
};

const kafka = async ({ kafka: set }: Config): Promise<EngineFinding> => {
  const found = { engine: 'Kafka', place: set?.brokers.join(',') ?? 'none' };
  if (set === undefined) {
    const cause = 'nothing is published; set KAFKA_BROKERS to the brokers to publish';
    return { ...found, state: 'not set', fault: false, cause };
  }
  return probe({
    ...found,
    call: async () => (await import('../topics/kafka/kafka-connection.ts')).pingKafka(set),
    hint: 'is this the listener that KAFKA_TLS and KAFKA_SASL_MECHANISM are for?',
  });
};

const provider = async (config: Config): Promise<EngineFinding> => {
  const { stripe } = config;
  const url = stripe?.url ?? config.provider.url;
  if (url === undefined) {
    const cause = 'simulated, moves no money; set PROVIDER_URL to use a real one';
    return { engine: 'provider', place: 'none', state: 'in the service', fault: false, cause };
  }
  return probe({
    ...(stripe && {
      cause: `Stripe in ${stripe.live ? 'live mode, moves money' : 'test mode, moves no money'}`,
    }),
    engine: 'provider',
    place: withoutSecrets(url),
    call: async () => {
      const { openOuterProvider } = await import('../command-api/open-provider.ts');
      const opened = openOuterProvider(config);
      // Stripe's ledger from now on is short.
      const reading = stripe
        ? opened.ledgerEnd(`${Math.floor(Date.now() / 1_000)}.`)
        : opened.ledger(null, 1);
      const looking = opened.madeElsewhere(Date.now());
      const [, ended] = await Promise.all([reading, looking]).finally(() => void opened.close());
      if (ended.outcome === 'UNKNOWN') throw new Error(`events cannot be read: ${ended.reason}`);
    },
    hint: stripe
      ? 'is STRIPE_SECRET_KEY a key that is not rolled, with the permissions of docs/providers/stripe.md, and are the accounts of MERCHANTS_FILE its own?'
      : 'is PROVIDER_TOKEN its token, and does it speak docs/provider.md?',
  });
};

export const lookAtEngines = (config: Config): Promise<EngineFinding[]> =>
  Promise.all([eventStore, readModels, kafka, provider].map((look) => look(config)));

/** Of the server of EVENTSTOREDB_URL: `faults` keep the service from its work, `warnings` do not. */
export type EventStoreServerFinding = ServerFacts & { faults: string[]; warnings: string[] };

/** Measured, and served by their maker (docs/eventstoredb.md). */
const SUPPORTED = 'EventStoreDB 24.10 and KurrentDB 26';
const isSupported = (version: string): boolean => /^(24\.10|26)\./.test(version);

const versionWarning = (version: string | null): string | false => {
  if (version === null || isSupported(version)) return false;
  return version.startsWith('23.10.')
    ? `its maker no longer supports 23.10, which works as measured: ${SUPPORTED} are supported`
    : `the service was never measured on this version: ${SUPPORTED} are supported`;
};

const GIVE_RIGHTS = '`npm run eventstoredb:rights -- <user>` gives it that right';

const warningsOf = (facts: ServerFacts): (string | false)[] => {
  const { version, members, namesOneNode, isInsecure, remove, rewriteMetadata } = facts;
  const may = [
    ...(remove === 'allowed' ? ['delete streams'] : []),
    ...(rewriteMetadata === 'allowed' ? ['rewrite their metadata'] : []),
  ].join(' and ');
  const who = isInsecure ? 'the server checks no user: any client may' : 'the user may';
  const hasNoLeader = members.length > 0 && members.every(({ state }) => state !== 'leader');
  return [
    may !== '' && `${who} ${may}, so the log is append-only by our word alone`,
    members.length > 1 &&
      namesOneNode &&
      'the address names one node of a cluster: name all of them, so that another can lead',
    hasNoLeader &&
      'no node leads, so nothing can be appended: wait for the election, or start the others',
    versionWarning(version),
  ];
};

/** Throws Error with one line for an address that cannot be read. */
export const lookAtEventStoreServer = async (url: string): Promise<EventStoreServerFinding> => {
  const { askServer } = await import('../shared/event-store/eventstoredb/server-facts.ts');
  const facts = await askServer(url);
  const faults = [
    facts.readAll === 'refused' &&
      `the user may not read $all, so no read model can follow: ${GIVE_RIGHTS}`,
    facts.append === 'refused' && `the user may not append: ${GIVE_RIGHTS}`,
  ];
  return { ...facts, faults: textsIn(faults), warnings: textsIn(warningsOf(facts)) };
};

const versionText = (version: string | null): string => {
  if (version === null) return 'unknown: the server does not say';
  return isSupported(version) ? `${version}, supported` : version;
};

export const serverRows = (finding: EventStoreServerFinding): string[][] => [
  ['  version', versionText(finding.version)],
  ...finding.members.map(({ address, state, isAlive }) => [
    `  ${address}`,
    isAlive ? state : `${state}, not alive`,
  ]),
  ['  read $all', finding.readAll],
  ['  append', finding.append],
  ['  delete streams', finding.remove],
  ['  rewrite metadata', finding.rewriteMetadata],
];
