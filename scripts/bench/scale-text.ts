/** The curve as text and as a picture. */
import { lineChart } from './chart.ts';
import { cpuUsOf, type Outcome } from './rounds.ts';
import type { BesideScans } from './scale-steps.ts';
import { type Goal, goalsTable, number, roundsList, table } from './text.ts';
import { reckoned } from './trend.ts';

/** What was measured at one size. */
export type Size = {
  /** Payments in the log. */
  size: number;
  create: Outcome;
  GET: Outcome;
  'GET of the latest': Outcome;
  /** `npm start` until ready, in the middle. */
  readyMs: number;
  rssBytes: number;
  projectedPerSecond: number;
  /** All files of the data folder. */
  bytes: number;
};

/** Events a second, of the commands that go through the whole log; NaN where one of them failed. */
export type Rates = { verifiedPerSecond: number; rebuiltPerSecond: number };

/** What was measured once, over the largest log. */
export type End = {
  scans: BesideScans;
  /** By a service that may use both CPUs, and by one that has one of them. */
  onBoth: Rates;
  onOne: Rates;
  /** Memory after 100,000 creates; left out of short runs. */
  rssBytes: number | undefined;
};

const TEN_MILLION = 10_000_000;
const GIGABYTE = 1024 ** 3;

/** Times of different sizes were measured at different times: each is a multiple of bare then. */
const timesBare = ({ ofBare }: Outcome): number => 1 / ofBare;

const allOverLatest = (size: Size): number =>
  cpuUsOf(size.GET.ours) / cpuUsOf(size['GET of the latest'].ours);

const cost = (outcome: Outcome): string =>
  `${number(cpuUsOf(outcome.ours))} (${number(timesBare(outcome))} ×)`;

const megabytes = (bytes: number): string => `${number(bytes / 1024 / 1024)} MB`;

const seconds = (ms: number): string => (Number.isNaN(ms) ? '-' : (ms / 1000).toFixed(2));

const rowOf = (size: Size): string[] => [
  size.size.toLocaleString('en-US'),
  cost(size.create),
  cost(size.GET),
  cost(size['GET of the latest']),
  allOverLatest(size).toFixed(2),
  seconds(size.readyMs),
  megabytes(size.rssBytes),
  number(size.projectedPerSecond),
  `${(size.bytes / GIGABYTE).toFixed(2)} GB`,
];

const tenMillion = (sizes: readonly Size[]): string[] => {
  const by = (growth: 'log' | 'size', of: (size: Size) => number): number => {
    const points = sizes.map((size) => ({ size: size.size, value: of(size) }));
    return reckoned(points, TEN_MILLION, growth);
  };
  const all = by('log', (size) => timesBare(size.GET));
  const latest = by('log', (size) => timesBare(size['GET of the latest']));
  return [
    '10,000,000, reckoned',
    `${number(by('log', (size) => timesBare(size.create)))} ×`,
    `${number(all)} ×`,
    `${number(latest)} ×`,
    number(all / latest),
    seconds(by('size', ({ readyMs }) => readyMs)),
    megabytes(by('log', (size) => size.rssBytes)),
    number(by('log', (size) => size.projectedPerSecond)),
    `${number(by('size', ({ bytes }) => bytes) / GIGABYTE)} GB`,
  ];
};

const rateText = ({ onBoth, onOne }: End, name: keyof Rates): string =>
  `${number(onBoth[name])} on both CPUs, ${number(onOne[name])} on one`;

const goalsOf = (sizes: readonly Size[], end: End): Goal[] => {
  const [first] = sizes;
  const last = sizes.at(-1);
  if (first === undefined || last === undefined) return [];
  const growth = timesBare(last.create) / timesBare(first.create);
  const { alone, beside } = end.scans;
  const at = (size: Size): string => size.size.toLocaleString('en-US');
  return [
    {
      what: `CPU of a create at ${at(last)} payments, over that at ${at(first)}, each beside bare`,
      goal: '≤ 1.1 ×',
      before: '1.3 to 1.5 × at 350,000',
      now: `${growth.toFixed(2)} ×`,
    },
    {
      what: `CPU of a GET over all of ${at(last)}, over that of the latest 1,000`,
      goal: '≤ 1.25 ×',
      before: '1.9 × at 42,000',
      now: `${allOverLatest(last).toFixed(2)} ×`,
    },
    {
      what: `start to ready at ${at(last)} payments`,
      goal: '< 1.2 s',
      before: '1.2 s, small',
      now: `${(last.readyMs / 1000).toFixed(2)} s`,
    },
    {
      what: 'memory after 100,000 creates and nothing else',
      goal: '≤ 350 MB',
      before: '530 MB',
      now: end.rssBytes === undefined ? 'not measured' : megabytes(end.rssBytes),
    },
    {
      what: '`payments projections rebuild`, events a second',
      goal: '≥ 60,000',
      before: '22,000 to 24,000',
      now: rateText(end, 'rebuiltPerSecond'),
    },
    {
      what: '`payments verify --all`, events a second',
      goal: '≥ 150,000',
      before: '54,000',
      now: rateText(end, 'verifiedPerSecond'),
    },
    {
      what: `p99 of GETs of one payment beside requests that scan ${at(last)}`,
      goal: '≤ 25 ms',
      before: '28 ms at 42,000',
      now: `${number(beside.p99Ms)} ms (${number(alone.p99Ms)} alone)`,
    },
  ];
};

/** The tables of the curve. `sizes` in ascending order. */
export const curveText = (sizes: readonly Size[], end: End): string => {
  const head = [
    'payments',
    'create, µs (of bare)',
    'GET of any, µs (of bare)',
    'GET of the latest 1,000',
    'any / latest',
    'start to ready, s',
    'RSS',
    'events/s into the read models',
    'on disk',
  ];
  const lists = sizes.map(
    ({ size, create, GET, 'GET of the latest': latest }) =>
      `${size.toLocaleString('en-US')} payments:\n\n${roundsList({ create, GET, 'GET of the latest': latest })}`,
  );
  return [
    '![CPU of a create and a GET as multiples of bare, over the number of payments](pictures/scale.svg)',
    goalsTable(goalsOf(sizes, end)),
    table(head, [...sizes.map(rowOf), tenMillion(sizes)]),
    ...lists,
  ].join('\n\n');
};

/** The curve: what a request costs as a multiple of bare. */
export const curvePicture = (sizes: readonly Size[]): string =>
  lineChart(
    'CPU of one request as the log grows',
    'CPU as a multiple of a bare request',
    sizes.map(({ size }) => size),
    [
      { name: 'durable create', kind: 'a', values: sizes.map(({ create }) => timesBare(create)) },
      { name: 'GET of any payment', kind: 'b', values: sizes.map(({ GET }) => timesBare(GET)) },
      {
        name: 'GET of the latest 1,000',
        kind: 'c',
        values: sizes.map((size) => timesBare(size['GET of the latest'])),
      },
    ],
  );
