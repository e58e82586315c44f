/** `npm run bench`: a durable create and a GET of the whole service, in turns with a bare server. */
import { barChart } from './chart.ts';
import { fillFolder } from './fill.ts';
import type { Findings } from './page.ts';
import { cpuUsOf, middleOf, type Outcome, outcomesBad, type Round } from './rounds.ts';
import { readyMsOfNpmStart, type Server, startServer } from './server.ts';
import { benchLine, type Goal, goalsTable, number, roundsList, roundsTable } from './text.ts';
import { inTurns, load, measured, type Report, type Turn } from './turns.ts';
import {
  bareGetOrder,
  bytesOf,
  getOrder,
  openWorkplace,
  postOrder,
  serviceOrder,
  startBare,
  startLeast,
  type Workplace,
} from './workplace.ts';

const PAYMENTS = 20_000;
const STARTS = 3;

/** The loads of the service: creates, and GETs of the payments that are there. */
export const loadsOf = (
  workplace: Workplace,
  service: Server,
  bare: Server,
  ids: readonly string[],
): [Turn<'create'>, Turn<'GET'>] => [
  {
    name: 'create',
    server: service,
    order: () => postOrder(workplace, service.url),
    bare: { server: bare, order: postOrder(workplace, bare.url, '/') },
    waitsForDisk: true,
  },
  {
    name: 'GET',
    server: service,
    order: () => getOrder(workplace, service.url, ids),
    bare: { server: bare, order: bareGetOrder(workplace, bare.url) },
    waitsForDisk: false,
  },
];

/** The writes of a create without all else (least.ts): what no service can be cheaper than. */
const leastOf = (workplace: Workplace, least: Server, bare: Server): Turn<'the writes alone'> => ({
  name: 'the writes alone',
  server: least,
  order: () => postOrder(workplace, least.url, '/'),
  bare: { server: bare, order: postOrder(workplace, bare.url, '/') },
  waitsForDisk: true,
});

/** In this time the engine compiles what is hot; a create costs a third less after it. */
const WARM_UP_ROUNDS = 3;

/** Sends each load for rounds that do not count, so that its code is compiled. */
export const warmUp = async (turns: readonly Turn[]): Promise<void> => {
  for (let round = 0; round < WARM_UP_ROUNDS; round += 1)
    for (const { order, bare } of turns) {
      await load(bare.order);
      await load(order());
    }
};

/** Starts `npm start` some times and gives the middle time until it was ready. */
export const startsToReady = async (workplace: Workplace): Promise<number> => {
  const times: number[] = [];
  for (let start = 0; start < STARTS; start += 1)
    times.push(await readyMsOfNpmStart(serviceOrder(workplace)));
  return middleOf(times);
};

type Open = Record<'barePost' | 'create' | 'bareGet' | 'get', Round>;

const inOpenLoop = async (
  [create, get]: readonly [Turn, Turn],
  outcomes: Record<'create' | 'GET', Outcome>,
): Promise<Open> => {
  const half = (round: Round) => ({ perSecond: round.perSecond / 2 });
  const { create: c, GET: g } = outcomes;
  return {
    barePost: await measured(create.bare.server, { ...create.bare.order, ...half(c.bare) }),
    create: await measured(create.server, { ...create.order(), ...half(c.ours) }),
    bareGet: await measured(get.bare.server, { ...get.bare.order, ...half(g.bare) }),
    get: await measured(get.server, { ...get.order(), ...half(g.ours) }),
  };
};

const goalsOf = ({ create, GET }: Record<'create' | 'GET', Outcome>, readyMs: number): Goal[] => [
  {
    what: 'durable create, CPU of bare POST divided by its CPU',
    goal: '≥ 0.30',
    before: '0.09 to 0.10',
    now: create.ofBare.toFixed(2),
  },
  {
    what: 'p99 of a create, closed loop of 64',
    goal: '≤ 4 × bare',
    before: '7.6 to 8.7 ×',
    now: `${number(create.ours.p99Ms / create.bare.p99Ms)} ×`,
  },
  {
    what: 'GET by random id of 20,000, CPU of a bare GET of as many bytes divided by its CPU',
    goal: '≥ 0.55',
    before: '0.15 to 0.18',
    now: GET.ofBare.toFixed(2),
  },
  {
    what: 'start to ready, 20,000 payments',
    goal: '< 1.2 s',
    before: '1.2 s',
    now: `${(readyMs / 1000).toFixed(2)} s`,
  },
];

const pictureOf = ({
  create,
  GET,
  'the writes alone': writes,
}: Record<'create' | 'GET' | 'the writes alone', Outcome>): string =>
  barChart('CPU of one request, beside bare Fastify', 'µs', [
    { name: 'bare POST', value: cpuUsOf(create.bare), kind: 'bare' },
    {
      name: 'durable create',
      value: cpuUsOf(create.ours),
      kind: 'a',
      aim: cpuUsOf(create.bare) / 0.3,
    },
    { name: 'the writes of a create alone', value: cpuUsOf(writes.ours), kind: 'c' },
    { name: 'bare GET of as many bytes', value: cpuUsOf(GET.bare), kind: 'bare' },
    { name: 'GET by id', value: cpuUsOf(GET.ours), kind: 'b', aim: cpuUsOf(GET.bare) / 0.55 },
  ]);

/** What was found, how many responses were no 2xx, and the line that is printed first. */
export type ServiceFindings = Findings & { line: string; bad: number };

/** Runs the bench. Throws Error when a server does not start. */
export const benchService = async (seconds: number, report: Report): Promise<ServiceFindings> => {
  const workplace = openWorkplace(seconds);
  const servers: Server[] = [];
  try {
    const ids = await fillFolder(workplace.dataDir, PAYMENTS, () => undefined);
    report(`${PAYMENTS} payments in the log`);
    // The first start has to bring the read models up to date.
    await readyMsOfNpmStart(serviceOrder(workplace));
    const readyMs = await startsToReady(workplace);
    const service = await startServer(serviceOrder(workplace));
    servers.push(service);
    const bytes = await bytesOf(workplace, service.url, ids[0] ?? '');
    const bare = await startBare(workplace, bytes);
    servers.push(bare);
    const least = await startLeast(workplace);
    servers.push(least);
    const loads = loadsOf(workplace, service, bare, ids);
    const turns = [...loads, leastOf(workplace, least, bare)];
    await warmUp(turns);
    const outcomes = await inTurns(turns, report);
    const { create, GET, 'the writes alone': writes } = outcomes;
    const open = await inOpenLoop(loads, outcomes);
    const rows = [
      { name: 'bare POST', round: create.bare, open: open.barePost },
      { name: 'create', round: create.ours, ofBare: create.ofBare, open: open.create },
      { name: 'the writes alone', round: writes.ours, ofBare: writes.ofBare },
      { name: `bare GET of ${number(bytes)} bytes`, round: GET.bare, open: open.bareGet },
      { name: 'GET', round: GET.ours, ofBare: GET.ofBare, open: open.get },
    ];
    const picture = '![CPU of a create and a GET beside bare Fastify](pictures/service.svg)';
    const parts = [picture, goalsTable(goalsOf(outcomes, readyMs)), roundsTable(rows)];
    return {
      name: 'service',
      line: benchLine(outcomes, readyMs),
      text: [...parts, roundsList(outcomes)].join('\n\n'),
      pictures: { 'service.svg': pictureOf(outcomes) },
      bad: outcomesBad(outcomes),
    };
  } finally {
    for (const server of servers) await server.stop();
    workplace.remove();
  }
};
