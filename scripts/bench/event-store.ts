/**
 * `npm run bench -- --eventstoredb`: the service on EventStoreDB and MongoDB, in turns with the service
 * on SQLite; and how often a request calls the event store, which only its stand-in counts. A create
 * goes to a command API and a GET to a query API, each a process of its own. The engines are those at
 * EVENTSTOREDB_URL and MONGODB_URL, or else the stand-ins of the tests.
 *
 * The response to a create waits up to 500 ms for the read models (gaps §9): where MongoDB is so slow
 * that the projector cannot follow, 64 connections send a hundred creates a second, and the CPU of a
 * process that is nearly idle, divided by so few, is no measure.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Findings } from './page.ts';
import { cpuUsOf, outcomesBad } from './rounds.ts';
import { untilCaughtUp } from './scale-steps.ts';
import { onCpu, ROOT, type Server, startServer, stopProcess } from './server.ts';
import { loadsOf, warmUp } from './service.ts';
import { goalsTable, number, roundsList, roundsTable } from './text.ts';
import { createdPayments, inTurns, load, type Report, type Turn } from './turns.ts';
import {
  bytesOf,
  LAUNCHED,
  openWorkplace,
  serviceOrder,
  startBare,
  type Workplace,
} from './workplace.ts';

/** The event store of a run. `calls` resolves with the number of calls so far, where it is known. */
type Store = {
  url: string;
  calls(): Promise<number | undefined>;
  stop(): Promise<void>;
};

/** A stand-in of the tests as a process on the load's CPU. `nextLine` is the next line that it prints. */
const startStandIn = async (name: string) => {
  const main = `test/support/${name}-stand-in-main.ts`;
  const [file, args] = onCpu(1, [process.execPath, main]);
  const child = spawn(file, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout });
  const nextLine = async (): Promise<string> => String((await once(lines, 'line'))[0]);
  return { child, nextLine, url: await nextLine(), stop: () => stopProcess(child) };
};

const openStore = async (): Promise<Store> => {
  const url = process.env.EVENTSTOREDB_URL?.trim();
  if (url) return { url, calls: async () => undefined, stop: async () => undefined };
  const standIn = await startStandIn('eventstoredb');
  return {
    url: standIn.url,
    calls: async () => {
      const line = standIn.nextLine();
      standIn.child.kill('SIGUSR2');
      const { append, read, subscribe } = JSON.parse(await line);
      return append + read + subscribe;
    },
    stop: standIn.stop,
  };
};

/** A database of this run's own, and what ends its server. */
const openMongo = async (): Promise<Pick<Store, 'url' | 'stop'>> => {
  const given = process.env.MONGODB_URL?.trim();
  const { url, stop } = given
    ? { url: given, stop: async () => undefined }
    : await startStandIn('mongodb');
  const own = new URL(url);
  own.pathname = `/bench-${process.pid}-${Date.now().toString(36)}`;
  return { url: own.href, stop };
};

const SECRET = 'a second secret of the bench, 32 bytes at least';

/** The servers that a create and a GET go to; each is added to `servers` as soon as it runs. */
const startOnEventStore = async (
  workplace: Workplace,
  engines: { EVENTSTOREDB_URL: string; MONGODB_URL: string },
  servers: Server[],
): Promise<{ commands: Server; queries: Server; projector: Server }> => {
  const dataDir = join(workplace.folder, 'on-eventstoredb');
  mkdirSync(dataDir, { mode: 0o700 });
  const env: NodeJS.ProcessEnv = {
    ...workplace.env,
    ...engines,
    DATA_DIR: dataDir,
    IDEMPOTENCY_SECRET: SECRET,
    WEBHOOK_SECRET: SECRET,
    RATE_LIMIT_PER_SECOND: '0',
    RATE_LIMIT_UNAUTHENTICATED_PER_SECOND: '0',
    PROVIDER_TOKEN: 'a-provider-token-of-the-bench',
    // The provider shares a CPU with the load, which leaves it little.
    PROVIDER_CONNECT_TIMEOUT_MS: '5000',
  };
  const start = async (main: string, cpus: 0 | 1 = 0): Promise<Server> => {
    const args = [...LAUNCHED, `${main}/main.ts`];
    const server = await startServer({ ...serviceOrder(workplace, main), args, env, cpus });
    servers.push(server);
    return server;
  };
  env.PROVIDER_URL = (await start('provider-simulator', 1)).url;
  const projector = await start('projector', 1);
  return { projector, commands: await start('command-api'), queries: await start('query-api') };
};

/** Calls to the store for one request, of all processes. */
const callsEach = async (store: Store, { order }: Turn): Promise<string> => {
  const before = await store.calls();
  const { requests } = await load(order());
  const after = await store.calls();
  return before === undefined || after === undefined
    ? 'not counted'
    : ((after - before) / requests).toFixed(2);
};

/** Runs the bench. Throws Error when a server does not start. */
export const benchEventStore = async (
  seconds: number,
  report: Report,
): Promise<Findings & { bad: number }> => {
  const workplace = openWorkplace(seconds);
  const store = await openStore();
  const mongo = await openMongo();
  const servers: Server[] = [];
  try {
    const sqlite = await startServer(serviceOrder(workplace));
    servers.push(sqlite);
    const engines = { EVENTSTOREDB_URL: store.url, MONGODB_URL: mongo.url };
    const { commands, queries, projector } = await startOnEventStore(workplace, engines, servers);
    const ownIds = await createdPayments(workplace, sqlite);
    const ids = await createdPayments(workplace, commands);
    await untilCaughtUp(projector.url);
    const bare = await startBare(workplace, await bytesOf(workplace, sqlite.url, ownIds[0] ?? ''));
    servers.push(bare);
    const [create, get] = loadsOf(workplace, sqlite, bare, ownIds);
    const [createThere] = loadsOf(workplace, commands, bare, ids);
    const [, getThere] = loadsOf(workplace, queries, bare, ids);
    // Each of those on EventStoreDB waits for other processes.
    const turns = [
      { ...create, name: 'SQLite: create' as const },
      { ...createThere, name: 'EventStoreDB: create' as const, waitsForDisk: true },
      { ...get, name: 'SQLite: GET' as const },
      { ...getThere, name: 'EventStoreDB: GET' as const, waitsForDisk: true },
    ];
    await warmUp(turns);
    const outcomes = await inTurns(turns, report);
    const there = { create: outcomes['EventStoreDB: create'], get: outcomes['EventStoreDB: GET'] };
    const goals = [
      {
        what: 'CPU of a create on EventStoreDB, command API',
        goal: '≤ 600 µs',
        before: '1,400 to 1,600 µs, whole service',
        now: `${number(cpuUsOf(there.create.ours))} µs, calls to the store ${await callsEach(store, createThere)}`,
      },
      {
        what: 'CPU of a GET on EventStoreDB, query API',
        goal: '≤ 150 µs',
        before: '270 to 380 µs, whole service',
        now: `${number(cpuUsOf(there.get.ours))} µs, calls to the store ${await callsEach(store, getThere)}`,
      },
    ];
    const rows = Object.entries(outcomes).map(([name, { ours, ofBare }]) => {
      return { name, round: ours, ofBare };
    });
    return {
      name: 'eventstoredb',
      text: [goalsTable(goals), roundsTable(rows), roundsList(outcomes)].join('\n\n'),
      pictures: {},
      bad: outcomesBad(outcomes),
    };
  } finally {
    for (const server of servers) await server.stop();
    await store.stop();
    await mongo.stop();
    workplace.remove();
  }
};
