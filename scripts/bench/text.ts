/** Tables and numbers as they stand on docs/performance.md. */
import { cpuUsOf, type Outcome, type Round } from './rounds.ts';

/** A markdown table. */
export const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');

/** A number as people read it: 1,234; 12; 3.4; 0.12. */
export const number = (value: number): string => {
  if (!Number.isFinite(value)) return '-';
  const digits = Math.abs(value) >= 10 ? 0 : Math.abs(value) >= 1 ? 1 : 2;
  return Number(value.toFixed(digits)).toLocaleString('en-US');
};

const megabytes = (bytes: number): string => number(bytes / 1024 / 1024);

/** Closed loop, and the open loop at half its rate where that was driven. */
export type Row = { name: string; round: Round; ofBare?: number; open?: Round };

/** What each load came to. */
export const roundsTable = (rows: readonly Row[]): string =>
  table(
    [
      'load',
      'CPU µs a request',
      'of bare',
      'requests/s',
      'p50, p99 ms',
      'p50, p99 ms at half the rate, open loop',
      'loop late: p99, longest ms',
      'GC: of the time, longest pause',
      'RSS MB',
    ],
    rows.map(({ name, round, ofBare, open }) => [
      name,
      number(cpuUsOf(round)),
      ofBare === undefined ? '' : ofBare.toFixed(2),
      number(round.perSecond),
      `${number(round.p50Ms)}, ${number(round.p99Ms)}`,
      open === undefined ? '' : `${number(open.p50Ms)}, ${number(open.p99Ms)}`,
      `${number(round.delayP99Ms)}, ${number(round.delayMaxMs)}`,
      `${number((round.gcMs * 100) / round.ms)} %, ${number(round.gcMaxMs)} ms`,
      megabytes(round.rssBytes),
    ]),
  );

/** The rounds of each load, and which were disturbed. */
export const roundsList = (outcomes: Readonly<Record<string, Outcome>>): string =>
  Object.entries(outcomes)
    .map(([name, { rounds, isClean }]) => {
      const remark = isClean ? '' : ' Every round was disturbed: these are no measure.';
      return `- ${name}, of bare in each round: ${rounds.join('; ')}.${remark}`;
    })
    .join('\n');

/** A goal, what was true before, and what is measured now. */
export type Goal = { what: string; goal: string; before: string; now: string };

/** The goals of one command. */
export const goalsTable = (goals: readonly Goal[]): string =>
  table(
    ['goal', 'aim', 'before', 'now'],
    goals.map(({ what, goal, before, now }) => [what, goal, before, now]),
  );

const shareOf = (ours: Round, bare: Round): string => {
  const ratio = (ours.perSecond / bare.perSecond).toFixed(2);
  const times = (ours.p99Ms / Math.max(bare.p99Ms, 1)).toFixed(1);
  const raw = `${Math.round(ours.perSecond)} of ${Math.round(bare.perSecond)}/s`;
  const p99 = `${Math.round(ours.p99Ms)} of ${Math.round(bare.p99Ms)} ms`;
  return `${ratio} (${raw}), p99 ${times} x (${p99})`;
};

/** The one line of `npm run bench`: rates and p99 as ratios to the bare server. */
export const benchLine = (
  { create, GET }: Record<'create' | 'GET', Outcome>,
  readyMs: number,
): string => {
  const ready = `start to ready ${(readyMs / 1000).toFixed(2)} s`;
  const shares = `create ${shareOf(create.ours, create.bare)}; GET ${shareOf(GET.ours, GET.bare)}`;
  return `${shares}; ${ready}`;
};
