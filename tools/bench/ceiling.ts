/**
 * `npm run bench -- --ceiling`: what each part of several processes costs in CPU, and the payments a
 * second at which one core of it is full. Prints Markdown for docs/performance.md.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { promisify } from 'node:util';
import {
  openSqliteEventStore,
  type SqliteEventStore,
} from '../../shared/event-store/sqlite/event-store.ts';
import { INTENTS } from '../../shared/payment/transitions.ts';
import { fileDocument } from '../../shared/read-models/key-document.ts';
import { startRelay } from '../../topics/relay.ts';
import { ours, ROOT } from './contestants.ts';
import { short } from './page.ts';
import { drive, type Run } from './rounds.ts';
import { onCpu, type Server, startServer } from './servers.ts';

const PAYMENTS = 20_000;
const LOOK_MS = 20;
/** A payment of the table is authorized and captured. */
const EVENTS_OF_ONE = 4;
const OPERATIONS_OF_ONE = 2;

/** In microseconds, of all threads of this process. */
const cpuOf = async (work: () => Promise<void>): Promise<number> => {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return user + system;
};

/** What other processes began, as each command process reads it. */
const follow = async (store: SqliteEventStore): Promise<void> => {
  for await (const { kind } of store.subscribe(null, AbortSignal.timeout(600_000), INTENTS))
    if (kind === 'caught-up') return;
};

/** To a broker that takes everything at once: the client of a real one comes on top. */
const relay = async (store: SqliteEventStore, folder: string): Promise<void> => {
  const relaying = startRelay({
    store,
    feed: {
      partitions: async () => ({ events: 12, state: 12, seals: 1 }),
      overtake: async () => undefined,
      publish: async () => undefined,
      close: async () => undefined,
    },
    checkpoint: fileDocument(join(folder, 'bench-relay.json')),
    mayRun: () => true,
    logger: { info: () => undefined, warn: () => undefined, error: () => undefined },
  });
  while ((await relaying.lag())?.events !== 0) await wait(LOOK_MS);
  await relaying.stop();
};

/** The service's CPU in microseconds while a command makes it work, and what the command printed. */
const cpuDuring = async (run: Run, service: Server, args: readonly string[]) => {
  const env = { ...run.place.envOf(service.name), PAYMENTS_URL: service.url };
  const before = await service.usage();
  const command = onCpu(1, [process.execPath, 'cli/payments.mjs', ...args]);
  const { stdout } = await promisify(execFile)(...command, { cwd: ROOT, env });
  return { stdout, cpuUs: (await service.usage()).cpuUs - before.cpuUs };
};

const measure = async (run: Run) => {
  const service = await startServer({ ...ours, name: 'ceiling' }, run.place);
  const { DATA_DIR = '' } = run.place.envOf(service.name);
  try {
    const { cpuUs: create, bad } = await drive(run, service, ['create', PAYMENTS]);
    const verified = await cpuDuring(run, service, ['verify', '--all', '--format', 'json']);
    const { events } = JSON.parse(verified.stdout);
    const compared = await cpuDuring(run, service, ['reconcile', '--format', 'json']);
    const { operations } = JSON.parse(compared.stdout);
    const rebuilt = await cpuDuring(run, service, ['projections', 'rebuild', '--yes']);
    await service.stop();
    const store = await openSqliteEventStore({ file: join(DATA_DIR, 'events.sqlite') });
    const followed = await cpuOf(() => follow(store));
    const relayed = await cpuOf(() => relay(store, DATA_DIR));
    await store.close();
    const project = rebuilt.cpuUs / events;
    return {
      bad,
      create,
      project,
      command: create - (events / PAYMENTS) * project,
      follow: followed / PAYMENTS,
      relay: relayed / events,
      reconcile: compared.cpuUs / operations,
    };
  } finally {
    await service.stop();
  }
};

const SECOND_US = 1e6;

/** Of `processes` command processes, each with one core, that follow one another's creates. */
const createsASecond = (command: number, follow: number, processes: number): number =>
  (SECOND_US * processes) / (command + (processes - 1) * follow);

/** Prints the tables. Resolves to the number of bad responses. Throws where the service does not start. */
export const benchCeiling = async (run: Run): Promise<number> => {
  const cost = await measure(run);
  const costs: [string, number, string][] = [
    ['create, embedded: read models and ledger included', cost.create, 'measured'],
    ['create in a command process', cost.command, 'computed: without the read models'],
    ["following another process's create", cost.follow, 'measured over SQLite, in large batches'],
    ['read models, an event', cost.project, 'measured by a rebuild'],
    ['relay, an event, without client and broker', cost.relay, 'measured'],
    ['reconciliation, an operation', cost.reconcile, 'measured'],
  ];
  const creates = (processes: number) => createsASecond(cost.command, cost.follow, processes);
  const ceilings: [string, number][] = [
    ['SQLite in one process, only creates', SECOND_US / cost.create],
    ...[1, 3, 10].map((n): [string, number] => [
      `command processes: ${n}, only creates`,
      creates(n),
    ]),
    ['command processes: any number, only creates', SECOND_US / cost.follow],
    [
      'the projector without webhooks and client, one core',
      SECOND_US / (EVENTS_OF_ONE * (cost.project + cost.relay)),
    ],
    [
      'a comparison of everything within a week, after a year',
      (7 * 86_400 * SECOND_US) / (OPERATIONS_OF_ONE * cost.reconcile) / (365 * 86_400),
    ],
  ];
  console.log('\n| part | CPU µs | |\n|---|---|---|');
  for (const [part, us, how] of costs) console.log(`| ${part} | ${short(us)} | ${how} |`);
  console.log('\n| limit | payments a second, computed |\n|---|---|');
  for (const [limit, rate] of ceilings) console.log(`| ${limit} | ${short(rate)} |`);
  return cost.bad;
};
