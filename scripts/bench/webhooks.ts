/**
 * `npm run bench -- --webhooks`: what one webhook endpoint costs the requests of its merchant. Two
 * services on equal logs, one without an endpoint and one that sends each create to a receiver beside
 * the load, are driven in turns. A round of creates ends when the receiver has the last message, so
 * that the CPU of every delivery counts.
 */
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fillFolder } from './fill.ts';
import type { LoadOrder } from './load.ts';
import type { Findings } from './page.ts';
import { cpuUsOf, middleOf, middleRound, type Round } from './rounds.ts';
import { type Server, startServer } from './server.ts';
import { type Goal, goalsTable, number, table } from './text.ts';
import { load, type Report } from './turns.ts';
import { getOrder, openWorkplace, postOrder, serviceOrder, type Workplace } from './workplace.ts';

const PAYMENTS = 5_000;
const ROUNDS = 5;
const DELIVERED_MS_MAX = 120_000;
/** Of the closed loop's rate, for latencies. */
const OPEN_SHARE = 0.5;
const AIM = 0.95;

type Side = { name: string; server: Server; received(): Promise<number> };
type Name = 'create' | 'GET';
type Pair = { without: Round; with: Round };

const startReceiver = async (workplace: Workplace): Promise<Server> =>
  startServer({
    args: ['scripts/bench/receiver.ts'],
    readyPath: '/',
    env: workplace.env,
    logFile: workplace.logFile('receiver'),
    cpu: 1,
  });

const startService = async (workplace: Workplace, name: string): Promise<Server> => {
  const env = { ...workplace.env, WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8' };
  const dataDir = join(workplace.folder, name);
  cpSync(workplace.dataDir, dataDir, { recursive: true });
  return startServer({ ...serviceOrder(workplace, name), env: { ...env, DATA_DIR: dataDir } });
};

const register = async ({ headers }: Workplace, { url }: Server, receiver: Server) => {
  const response = await fetch(`${url}/api/v1/webhook-endpoints`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({ url: `${receiver.url}/hook` }),
  });
  if (response.status !== 201)
    throw new Error(`no endpoint: ${response.status} ${await response.text()}`);
};

/** Waits until the receiver has as many messages as there were creates. */
const untilDelivered = async (side: Side, count: number): Promise<void> => {
  const deadline = performance.now() + DELIVERED_MS_MAX;
  while ((await side.received()) < count) {
    if (performance.now() > deadline)
      throw new Error(`${side.name}: ${await side.received()} of ${count} messages delivered`);
    await wait(20);
  }
};

const measured = async (side: Side, order: LoadOrder, isCreate: boolean): Promise<Round> => {
  await side.server.usage();
  const before = await side.received();
  const { ids: _, firstBad, ...result } = await load(order);
  if (firstBad !== undefined) process.stderr.write(`${order.method} ${order.url}: ${firstBad}\n`);
  if (isCreate) await untilDelivered(side, before + result.requests - result.bad);
  return { ...result, ...(await side.server.usage()) };
};

const shareOf = (pair: Pair): number => cpuUsOf(pair.without) / cpuUsOf(pair.with);

const row = (name: Name, pairs: readonly Pair[], open: Pair): string[] => {
  const without = middleRound(pairs.map((pair) => pair.without));
  const own = middleRound(pairs.map((pair) => pair.with));
  const latency = ({ p50Ms, p99Ms }: Round) => `${number(p50Ms)}, ${number(p99Ms)}`;
  return [
    name,
    number(cpuUsOf(without)),
    number(cpuUsOf(own)),
    middleOf(pairs.map(shareOf)).toFixed(2),
    pairs.map((pair) => shareOf(pair).toFixed(2)).join('; '),
    `${number(without.perSecond)}, ${number(own.perSecond)}`,
    latency(open.without),
    latency(open.with),
  ];
};

const goalOf = (name: Name, pairs: readonly Pair[]): Goal => ({
  what: `${name}: CPU without an endpoint divided by CPU with one, deliveries included`,
  goal: `≥ ${AIM}`,
  before: '',
  now: middleOf(pairs.map(shareOf)).toFixed(2),
});

/** Runs the bench. Throws Error when a server does not start or a message does not arrive. */
export const benchWebhooks = async (
  seconds: number,
  report: Report,
): Promise<Findings & { bad: number }> => {
  const workplace = openWorkplace(seconds);
  const servers: Server[] = [];
  const start = async (server: Promise<Server>): Promise<Server> => {
    servers.push(await server);
    return server;
  };
  try {
    const ids = await fillFolder(workplace.dataDir, PAYMENTS, () => undefined);
    const receiver = await start(startReceiver(workplace));
    const without = await start(startService(workplace, 'without'));
    const own = await start(startService(workplace, 'with'));
    await register(workplace, own, receiver);
    const received = async () => Number(await (await fetch(receiver.url)).text());
    const sides: Record<keyof Pair, Side> = {
      without: { name: 'without', server: without, received: async () => Infinity },
      with: { name: 'with', server: own, received },
    };
    const orders: Record<Name, (server: Server) => LoadOrder> = {
      create: ({ url }) => postOrder(workplace, url),
      GET: ({ url }) => getOrder(workplace, url, ids),
    };
    const both = async (name: Name, perSecond?: number): Promise<Pair> => {
      const rate = perSecond === undefined ? {} : { perSecond };
      const one = (side: Side) =>
        measured(side, { ...orders[name](side.server), ...rate }, name === 'create');
      return { without: await one(sides.without), with: await one(sides.with) };
    };
    const pairs: Record<Name, Pair[]> = { create: [], GET: [] };
    const names = ['create', 'GET'] as const;
    for (const name of names) await both(name);
    for (let round = 1; round <= ROUNDS; round += 1) {
      for (const name of names) {
        const pair = await both(name);
        pairs[name].push(pair);
        const costs = `${number(cpuUsOf(pair.without))} and ${number(cpuUsOf(pair.with))} µs`;
        report(`${name}, round ${round}: ${costs}, ${shareOf(pair).toFixed(2)}`);
      }
    }
    const openOf = (name: Name) =>
      both(name, middleOf(pairs[name].map((pair) => pair.without.perSecond)) * OPEN_SHARE);
    const open = { create: await openOf('create'), GET: await openOf('GET') };
    const rows = names.map((name) => row(name, pairs[name], open[name]));
    const head = [
      'load',
      'CPU µs, no endpoint',
      'one endpoint',
      'share',
      'in each round',
      'requests/s of both',
      'p50, p99 ms at half the rate, open loop: none',
      'one endpoint',
    ];
    return {
      name: 'webhooks',
      text: [goalsTable(names.map((name) => goalOf(name, pairs[name]))), table(head, rows)].join(
        '\n\n',
      ),
      pictures: {},
      bad: [...pairs.create, ...pairs.GET, open.create, open.GET]
        .flatMap((pair) => [pair.without.bad, pair.with.bad])
        .reduce((sum, bad) => sum + bad, 0),
    };
  } finally {
    for (const server of servers) await server.stop();
    workplace.remove();
  }
};
