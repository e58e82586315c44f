/** The page that a run prints: the middle of all rounds, ratios within each round, and the floors. */
import type { Kind } from './load.ts';
import type { Sample } from './rounds.ts';

type Field = 'perSecond' | 'p99Ms' | 'cpuUs' | 'megabytes';

/** Three digits that count; `-` where there is no figure. */
export const short = (value: number | undefined): string => {
  if (value === undefined || Number.isNaN(value)) return '-';
  return value >= 100 ? String(Math.round(value)) : String(Number(value.toPrecision(3)));
};

/** Prints rows under a title, the columns aligned. */
export const printTable = (title: string, rows: readonly (readonly string[])[]): void => {
  const widths = (rows[0] ?? []).map((_, at) =>
    Math.max(...rows.map((row) => row[at]?.length ?? 0)),
  );
  const line = (row: readonly string[]) =>
    row.map((cell, at) =>
      at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0),
    );
  console.log(`\n${title}`);
  for (const row of rows) console.log(line(row).join('  '));
};

/** The middle value, and the ranks between which the middle of endless rounds lies with 95 %. */
export const middleOf = (values: readonly number[]) => {
  const sorted = values.toSorted((a, b) => a - b);
  const { length } = sorted;
  const at = Math.max(Math.round((length - 1.96 * Math.sqrt(length)) / 2) - 1, 0);
  return { middle: sorted[Math.floor(length / 2)], from: sorted[at], to: sorted[length - 1 - at] };
};

const valuesOf = (all: readonly Sample[], kind: Kind, field: Field, name: string): number[] =>
  all.filter((one) => one.kind === kind && one.name === name).map((one) => one[field]);

/** One contestant's figure divided by another's, in each round. */
const ratiosOf = (
  all: readonly Sample[],
  kind: Kind,
  field: Field,
  [over, under]: readonly [string, string],
): number[] => {
  const below = valuesOf(all, kind, field, under);
  return valuesOf(all, kind, field, over).map((value, at) => value / (below[at] ?? Number.NaN));
};

const ranged = (values: readonly number[]): string => {
  const { middle, from, to } = middleOf(values);
  return middle === undefined || Number.isNaN(middle)
    ? '-'
    : `${short(middle)} (${short(from)}-${short(to)})`;
};

const COLUMNS = (['create', 'GET'] as const).flatMap((kind) =>
  (['perSecond', 'p99Ms', 'cpuUs'] as const).map((field) => [kind, field] as const),
);
const HEADS = ['creates/s', 'p99 ms', 'CPU us', 'GETs/s', 'p99 ms', 'CPU us'];

/** Prints each contestant's middle figures. */
export const printMiddles = (all: readonly Sample[], names: readonly string[]): void => {
  const rows = names.map((name) => [
    name,
    ...COLUMNS.map(([kind, field]) => short(middleOf(valuesOf(all, kind, field, name)).middle)),
    short(valuesOf(all, 'create', 'megabytes', name).at(-1)),
  ]);
  printTable('middle of all rounds', [['', ...HEADS, 'MB'], ...rows]);
};

/** Prints one contestant's figures as multiples of each other one's. */
export const printRatios = (
  all: readonly Sample[],
  name: string,
  others: readonly string[],
): void => {
  const rows = others.map((other) => [
    other,
    ...COLUMNS.map(([kind, field]) => ranged(ratiosOf(all, kind, field, [name, other]))),
  ]);
  printTable(`${name} / the other, within each round (95 % range)`, [['', ...HEADS], ...rows]);
};

/** Prints a service's floors as shares of the bare server, and the aim where `least` was driven too. */
export const printFloors = (
  all: readonly Sample[],
  name: string,
  { bare, least }: { bare: string; least: string },
): void => {
  const row = (
    title: string,
    values: readonly number[],
    bound: { least: number } | { most: number },
  ) => {
    const middle = middleOf(values).middle ?? Number.NaN;
    const isMet = 'least' in bound ? middle >= bound.least : middle <= bound.most;
    const limit = 'least' in bound ? `>= ${bound.least}` : `<= ${bound.most}`;
    return [title, ranged(values), limit, isMet ? 'met' : 'missed'];
  };
  const aim = ratiosOf(all, 'create', 'cpuUs', [name, least]);
  printTable(`floors of ${name}`, [
    row('create: CPU of bare / its CPU', ratiosOf(all, 'create', 'cpuUs', [bare, name]), {
      least: 0.12,
    }),
    row('GET: CPU of bare / its CPU', ratiosOf(all, 'GET', 'cpuUs', [bare, name]), { least: 0.45 }),
    row('create: its p99 / p99 of bare', ratiosOf(all, 'create', 'p99Ms', [name, bare]), {
      most: 9,
    }),
    ...(aim.every(Number.isFinite)
      ? [row('aim: its CPU of a create / CPU of checks and writes', aim, { most: 1.25 })]
      : []),
  ]);
};
