/**
 * `npm run bench -- --webhooks`: what one webhook endpoint costs the requests of its merchant. Two
 * services on equal logs, one without an endpoint and one that sends each create to a receiver beside
 * the load, are driven in turns. A round of creates is over when the receiver has the last message: how
 * long that took is shown, so that no queue grows unseen, and the CPU of every delivery counts.
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
/** `lateMs`: how long after the last response the last message had arrived. */
type Driven = Round & { lateMs: number };
type Pair = { without: Driven; with: Driven };

const startReceiver = async (workplace: Workplace): Promise<Server> =>
  startServer({
    args: ['scripts/bench/receiver.ts'],
    readyPath: '/',
    env: workplace.env,
    logFile: workplace.logFile('receiver'),
    cpus: 1,
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

const measured = async (side: Side, order: LoadOrder, isCreate: boolean): Promise<Driven> => {
  await side.server.usage();
  const before = await side.received();
  const { ids: _, firstBad, ...result } = await load(order);
  if (firstBad !== undefined) process.stderr.write(`${order.method} ${order.url}: ${firstBad}\n`);
  const endedMs = performance.now();
  if (isCreate) await untilDelivered(side, before + result.requests - result.bad);
  const lateMs = performance.now() - endedMs;
  return { ...result, ...(await side.server.usage()), lateMs };
};

/** The middle over pairs of rounds, each driven one after the other. */
const middle = (pairs: readonly Pair[], of: (pair: Pair) => number): number =>
  middleOf(pairs.map(of));

const rateShare = (pair: Pair): number => pair.with.perSecond / pair.without.perSecond;
const cpuShare = (pair: Pair): number => cpuUsOf(pair.without) / cpuUsOf(pair.with);
const p50Share = (pair: Pair): number => pair.without.p50Ms / pair.with.p50Ms;
const p99Share = (pair: Pair): number => pair.without.p99Ms / pair.with.p99Ms;

/** Pairs at the highest rate (closed loop), and at half of it (open loop). */
type Pairs = { closed: Pair[]; open: Pair[] };

const HEAD = [
  'load',
  'requests/s, no endpoint',
  'one endpoint',
  'share in each round',
  'p50, p99 ms at half the rate, open loop: none',
  'one endpoint',
  'last message after the round, s: full rate, half',
  'CPU µs, none',
  'one endpoint, deliveries included',
  'share',
];

const row = (name: Name, { closed, open }: Pairs): string[] => {
  const ofSide = (pairs: readonly Pair[], side: keyof Pair) =>
    middleRound(pairs.map((one) => one[side]));
  const latency = (side: keyof Pair): string => {
    const { p50Ms, p99Ms } = ofSide(open, side);
    return `${number(p50Ms)}, ${number(p99Ms)}`;
  };
  const late = (pairs: readonly Pair[]) => number(middle(pairs, (pair) => pair.with.lateMs) / 1000);
  return [
    name,
    number(ofSide(closed, 'without').perSecond),
    number(ofSide(closed, 'with').perSecond),
    closed.map((pair) => rateShare(pair).toFixed(2)).join('; '),
    latency('without'),
    latency('with'),
    name === 'create' ? `${late(closed)}, ${late(open)}` : '',
    number(cpuUsOf(ofSide(closed, 'without'))),
    number(cpuUsOf(ofSide(closed, 'with'))),
    middle(closed, cpuShare).toFixed(2),
  ];
};

const goalsOf = (name: Name, { closed, open }: Pairs): Goal[] => {
  const goal = (what: string, share: number): Goal => ({
    what: `${name}: ${what}`,
    goal: `≥ ${AIM}`,
    before: '',
    now: share.toFixed(2),
  });
  return [
    goal('rate with one endpoint divided by the rate without', middle(closed, rateShare)),
    goal('p50 without divided by p50 with one, at half the rate', middle(open, p50Share)),
    goal('p99 without divided by p99 with one, at half the rate', middle(open, p99Share)),
  ];
};

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
    /** Each side is the first one every other round: what changes meanwhile on the machine favours neither. */
    const both = async (name: Name, round: number, perSecond?: number): Promise<Pair> => {
      const rate = perSecond === undefined ? {} : { perSecond };
      const one = (side: Side) =>
        measured(side, { ...orders[name](side.server), ...rate }, name === 'create');
      if (round % 2 === 0)
        return { without: await one(sides.without), with: await one(sides.with) };
      const first = await one(sides.with);
      return { without: await one(sides.without), with: first };
    };
    const pairs: Record<Name, Pairs> = {
      create: { closed: [], open: [] },
      GET: { closed: [], open: [] },
    };
    const names = ['create', 'GET'] as const;
    for (const name of names) await both(name, 0);
    for (let round = 1; round <= ROUNDS; round += 1) {
      for (const name of names) {
        const closed = await both(name, round);
        const open = await both(name, round, closed.without.perSecond * OPEN_SHARE);
        pairs[name].closed.push(closed);
        pairs[name].open.push(open);
        const rates = `${number(closed.with.perSecond)} of ${number(closed.without.perSecond)}/s`;
        const lastS = number(closed.with.lateMs / 1000);
        report(`${name}, round ${round}: ${rates}, last message ${lastS} s after it`);
      }
    }
    const goals = names.flatMap((name) => goalsOf(name, pairs[name]));
    const rows = names.map((name) => row(name, pairs[name]));
    return {
      name: 'webhooks',
      text: [goalsTable(goals), table(HEAD, rows)].join('\n\n'),
      pictures: {},
      bad: names
        .flatMap((name) => [...pairs[name].closed, ...pairs[name].open])
        .reduce((sum, pair) => sum + pair.without.bad + pair.with.bad, 0),
    };
  } finally {
    for (const server of servers) await server.stop();
    workplace.remove();
  }
};
