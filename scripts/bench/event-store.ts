/**
 * `npm run bench -- --eventstoredb`: the service on EventStoreDB, at EVENTSTOREDB_URL or else on the
 * stand-in of the tests, in turns with the service on SQLite; and how often a request calls the store,
 * which only the stand-in counts. With MONGODB_URL a create goes to a command API and a GET to a query
 * API, each a process of its own; without, to the whole service in one process.
 *
 * A create needs no projector, but its response waits up to 500 ms for it (gaps §9): a projector that
 * is slower than the command API lets 64 connections send some 120 creates a second, and a process
 * that is nearly idle has no CPU a create worth showing. So creates come last, on more connections,
 * and the projector is stopped before them.
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

const openStore = async (): Promise<Store> => {
  const url = process.env.EVENTSTOREDB_URL?.trim();
  if (url) return { url, calls: async () => undefined, stop: async () => undefined };
  const main = 'test/support/eventstoredb-stand-in-main.ts';
  const [file, args] = onCpu(1, [process.execPath, main]);
  const child = spawn(file, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout });
  const nextLine = async (): Promise<string> => String((await once(lines, 'line'))[0]);
  return {
    url: await nextLine(),
    calls: async () => {
      const line = nextLine();
      child.kill('SIGUSR2');
      const { append, read, subscribe } = JSON.parse(await line);
      return append + read + subscribe;
    },
    stop: () => stopProcess(child),
  };
};

/** So many that a command API is busy though each response waits for half a second. */
const CONNECTIONS_WAITING = 512;

const WAITS_SHOWN = `In the rounds of creates on EventStoreDB the projector is stopped, and ${CONNECTIONS_WAITING} connections send instead of 64: each response waits its 500 ms for the read models, so its p50 and p99 are of that wait, and the CPU, which is the command API's own, includes asking for them.`;

/** FerretDB in MongoDB's place needs 10 ms and more for each. */
const PAYMENTS_THERE = 1000;

const SECRET = 'a second secret of the bench, 32 bytes at least';

/** The servers that a create and a GET go to; each is added to `servers` as soon as it runs. */
const startOnEventStore = async (
  workplace: Workplace,
  store: Store,
  servers: Server[],
): Promise<{ commands: Server; queries: Server; projector?: Server; where: string }> => {
  const dataDir = join(workplace.folder, 'on-eventstoredb');
  mkdirSync(dataDir, { mode: 0o700 });
  const env: NodeJS.ProcessEnv = {
    ...workplace.env,
    DATA_DIR: dataDir,
    EVENTSTOREDB_URL: store.url,
    IDEMPOTENCY_SECRET: SECRET,
    WEBHOOK_SECRET: SECRET,
  };
  const start = async (main: string, cpus: 0 | 1 = 0): Promise<Server> => {
    const args = [...LAUNCHED, `${main}/main.ts`];
    const server = await startServer({ ...serviceOrder(workplace, main), args, env, cpus });
    servers.push(server);
    return server;
  };
  if (process.env.MONGODB_URL === undefined) {
    const service = await start('embedded');
    return { commands: service, queries: service, where: 'whole service in one process' };
  }
  const mongo = new URL(process.env.MONGODB_URL);
  mongo.pathname = `/bench-${process.pid}-${Date.now().toString(36)}`;
  Object.assign(env, {
    MONGODB_URL: mongo.href,
    RATE_LIMIT_PER_SECOND: '0',
    RATE_LIMIT_UNAUTHENTICATED_PER_SECOND: '0',
    PROVIDER_TOKEN: 'a-provider-token-of-the-bench',
    // The provider shares a CPU with the load, which leaves it little.
    PROVIDER_CONNECT_TIMEOUT_MS: '5000',
  });
  env.PROVIDER_URL = (await start('provider-simulator', 1)).url;
  const projector = await start('projector', 1);
  const commands = await start('command-api');
  const queries = await start('query-api');
  return { commands, queries, projector, where: 'command API and query API' };
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
  const servers: Server[] = [];
  try {
    const sqlite = await startServer(serviceOrder(workplace));
    servers.push(sqlite);
    const { commands, queries, projector, where } = await startOnEventStore(
      workplace,
      store,
      servers,
    );
    const ownIds = await createdPayments(workplace, sqlite);
    const ids = await createdPayments(workplace, commands, PAYMENTS_THERE);
    await untilCaughtUp((projector ?? queries).url);
    const bare = await startBare(workplace, await bytesOf(workplace, sqlite.url, ownIds[0] ?? ''));
    servers.push(bare);
    const [create, get] = loadsOf(workplace, sqlite, bare, ownIds);
    const [create64] = loadsOf(workplace, commands, bare, ids);
    const waiting = projector === undefined ? {} : { connections: CONNECTIONS_WAITING };
    const createThere = { ...create64, order: () => ({ ...create64.order(), ...waiting }) };
    const [, getThere] = loadsOf(workplace, queries, bare, ids);
    const gets = [
      { ...get, name: 'SQLite: GET' as const },
      // A GET there waits for two servers.
      { ...getThere, name: 'EventStoreDB: GET' as const, waitsForDisk: true },
    ];
    const creates = [
      { ...create, name: 'SQLite: create' as const },
      { ...createThere, name: 'EventStoreDB: create' as const },
    ];
    await warmUp(gets);
    const outcomesOfGets = await inTurns(gets, report);
    const callsOfGet = await callsEach(store, getThere);
    await projector?.stop();
    await warmUp(creates);
    const outcomes = { ...(await inTurns(creates, report)), ...outcomesOfGets };
    const there = { create: outcomes['EventStoreDB: create'], get: outcomes['EventStoreDB: GET'] };
    const goals = [
      {
        what: `CPU of a create on EventStoreDB (${where})`,
        goal: '≤ 600 µs',
        before: '1,400 to 1,600 µs, whole service',
        now: `${number(cpuUsOf(there.create.ours))} µs, calls to the store ${await callsEach(store, createThere)}`,
      },
      {
        what: `CPU of a GET on EventStoreDB (${where})`,
        goal: '≤ 150 µs',
        before: '270 to 380 µs, whole service',
        now: `${number(cpuUsOf(there.get.ours))} µs, calls to the store ${callsOfGet}`,
      },
    ];
    const rows = Object.entries(outcomes).map(([name, { ours, ofBare }]) => {
      return { name, round: ours, ofBare };
    });
    return {
      name: 'eventstoredb',
      text: [
        goalsTable(goals),
        ...(projector === undefined ? [] : [WAITS_SHOWN]),
        roundsTable(rows),
        roundsList(outcomes),
      ].join('\n\n'),
      pictures: {},
      bad: outcomesBad(outcomes),
    };
  } finally {
    for (const server of servers) await server.stop();
    await store.stop();
    workplace.remove();
  }
};
