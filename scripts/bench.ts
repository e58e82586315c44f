/**
 * `npm run bench`: durable create and GET as shares of a bare Fastify server. Both are driven in
 * turns in the same run, because numbers of different runs on one machine cannot be compared. Logs
 * go to a file and metrics are on, as in production; rate limits are off. Exit code 1 when any
 * response was not 2xx. `npm run bench -- --eventstoredb` runs the service on EventStoreDB and says
 * what each request costs there (bench-event-store.ts).
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { benchEventStore, measureCosts } from './bench-event-store.ts';
import type { LoadOrder, LoadResult } from './bench-load.ts';

const ROOT = join(import.meta.dirname, '..');
const ROUNDS = 3;
const ROUND_SECONDS = 4;
const WARM_UP_SECONDS = 2;
const READY_MS_MAX = 20_000;
const PORT = 18_080;
const ECHO_PORT = 18_081;

const { values: options } = parseArgs({ options: { eventstoredb: { type: 'boolean' } } });

const folder = mkdtempSync(join(tmpdir(), 'payments-bench-'));
const env: NodeJS.ProcessEnv = {
  PATH: process.env.PATH,
  HOME: process.env.HOME,
  DATA_DIR: join(folder, 'data'),
  PORT: String(PORT),
};

// Server and load run on a CPU each, else they slow each other down.
const canPin = availableParallelism() > 1 && spawnSync('taskset', ['-V']).status === 0;
const pinned = (cpu: number, command: string[]): [string, string[]] => {
  const [file = '', ...args] = canPin ? ['taskset', '-c', String(cpu), ...command] : command;
  return [file, args];
};

const startServer = (command: string[], port: number): ChildProcess => {
  const out = openSync(join(folder, `${port}.log`), 'a');
  return spawn(...pinned(0, command), {
    cwd: ROOT,
    env: { ...env, PORT: String(port) },
    stdio: ['ignore', out, out],
  });
};

const untilOk = async (url: string): Promise<void> => {
  const deadline = performance.now() + READY_MS_MAX;
  while (
    !(await fetch(url).then(
      ({ ok }) => ok,
      () => false,
    ))
  ) {
    if (performance.now() > deadline)
      throw new Error(`${url} did not respond 200 within ${READY_MS_MAX} ms`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
};

const load = async (order: LoadOrder): Promise<LoadResult> => {
  const child = spawn(...pinned(1, [process.execPath, join(ROOT, 'scripts/bench-load.ts')]), {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  child.stdin.end(JSON.stringify(order));
  return JSON.parse(await text(child.stdout));
};

const token = (): string =>
  spawnSync(process.execPath, ['cli/payments.mjs', 'token'], {
    cwd: ROOT,
    env,
    encoding: 'utf8',
  }).stdout.trim();

const median = (values: number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

type Name = 'barePost' | 'create' | 'bareGet' | 'get';

/** The four loads; the reads need the ids of payments made before. */
const ordersFor = (ids: string[]): Record<Name, LoadOrder> => {
  const service = `http://127.0.0.1:${PORT}`;
  const bare = `http://127.0.0.1:${ECHO_PORT}`;
  const headers = { authorization: `Bearer ${token()}`, 'content-type': 'application/json' };
  const body = readFileSync(join(ROOT, 'examples/payment.json'), 'utf8');
  const seconds = ROUND_SECONDS;
  const root = '/api/v1/payments';
  const reading = { authorization: headers.authorization };
  return {
    barePost: { url: bare, seconds, method: 'POST', paths: ['/'], headers, body },
    create: { url: service, seconds, method: 'POST', paths: [root], headers, body },
    bareGet: { url: bare, seconds, method: 'GET', paths: ['/'], headers: reading },
    get: {
      url: service,
      seconds,
      method: 'GET',
      paths: ids.map((id) => `${root}/${id}`),
      headers: reading,
    },
  };
};

const warmUp = async (): Promise<Record<Name, LoadOrder>> => {
  const seconds = WARM_UP_SECONDS;
  const { ids } = await load({ ...ordersFor([]).create, seconds, collect: true });
  if (ids.length === 0) throw new Error('the service created no payment');
  const orders = ordersFor(ids);
  for (const name of ['barePost', 'bareGet', 'get'] as const) {
    await load({ ...orders[name], seconds });
  }
  return orders;
};

type Around = <T extends LoadResult>(name: Name, round: () => Promise<T>) => Promise<T>;

const measure = async (
  orders: Record<Name, LoadOrder>,
  around: Around,
): Promise<Record<Name, LoadResult>> => {
  const names = Object.keys(orders) as Name[];
  const results: Record<Name, LoadResult[]> = { barePost: [], create: [], bareGet: [], get: [] };
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const name of names) results[name].push(await around(name, () => load(orders[name])));
  }
  const middle = (of: LoadResult[]): LoadResult => ({
    requests: of.reduce((sum, { requests }) => sum + requests, 0),
    perSecond: median(of.map(({ perSecond }) => perSecond)),
    p99Ms: median(of.map(({ p99Ms }) => p99Ms)),
    bad: of.reduce((sum, { bad }) => sum + bad, 0),
    ids: [],
  });
  const { barePost, create, bareGet, get } = results;
  return {
    barePost: middle(barePost),
    create: middle(create),
    bareGet: middle(bareGet),
    get: middle(get),
  };
};

const lineOf = ({ barePost, create, bareGet, get }: Record<Name, LoadResult>, readyMs: number) => {
  const share = (ours: LoadResult, bare: LoadResult) => {
    const ratio = (ours.perSecond / bare.perSecond).toFixed(2);
    const times = (ours.p99Ms / Math.max(bare.p99Ms, 1)).toFixed(1);
    const raw = `${Math.round(ours.perSecond)} of ${Math.round(bare.perSecond)}/s`;
    return `${ratio} (${raw}), p99 ${times} x (${ours.p99Ms} of ${bare.p99Ms} ms)`;
  };
  const ready = `start to ready ${(readyMs / 1000).toFixed(2)} s`;
  return `create ${share(create, barePost)}; GET ${share(get, bareGet)}; ${ready}`;
};

const stop = async (server: ChildProcess): Promise<void> => {
  if (server.exitCode !== null || server.signalCode !== null) return;
  server.kill('SIGTERM');
  await once(server, 'exit');
};

const eventStore = options.eventstoredb
  ? await benchEventStore((command) => {
      const [file, args] = pinned(1, command);
      return spawn(file, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] });
    })
  : undefined;
if (eventStore !== undefined) {
  env.EVENTSTOREDB_URL = eventStore.url;
  env.IDEMPOTENCY_SECRET = randomBytes(32).toString('hex');
}
const costs = eventStore && measureCosts(eventStore, `http://127.0.0.1:${PORT}/metrics`);

const startedAt = performance.now();
const service = startServer(['npm', 'start'], PORT);
const servers = [service];
try {
  await untilOk(`http://127.0.0.1:${PORT}/health/ready`);
  const readyMs = performance.now() - startedAt;
  servers.push(startServer([process.execPath, 'scripts/bench-echo.ts'], ECHO_PORT));
  await untilOk(`http://127.0.0.1:${ECHO_PORT}/`);
  const around: Around = (name, round) => costs?.around(name, round) ?? round();
  const results = await measure(await warmUp(), around);
  process.stdout.write(`${lineOf(results, readyMs)}\n`);
  if (costs) process.stdout.write(`${costs.lineOf('create')}; ${costs.lineOf('get')}\n`);
  const bad = Object.entries(results).filter(([, result]) => result.bad > 0);
  for (const [name, result] of bad) process.stderr.write(`${name}: ${result.bad} not 2xx\n`);
  process.exitCode = bad.length === 0 ? 0 : 1;
} finally {
  for (const server of servers) await stop(server);
  eventStore?.stop();
  rmSync(folder, { recursive: true });
}
