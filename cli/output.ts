/** How verbs print and fail: data on stdout, the rest on stderr; colour only in a terminal. */
import { styleText } from 'node:util';
import { withoutControlSigns } from '../shared/runtime/json.ts';

const STYLES = ['red', 'green', 'yellow', 'bold', 'dim'] as const;
type Style = (typeof STYLES)[number];

const OWN_SEQUENCES: ReadonlySet<string> = new Set(
  STYLES.flatMap((style) => styleText(style, ' ', { validateStream: false }).split(' ')),
);
const SEQUENCE = /(\p{Cc}\[[0-9;]*m)/u;

/** Control signs in stored texts, which could hide what follows, are shown as escapes. */
const shown = (text: string): string =>
  text
    .split(SEQUENCE)
    .map((part) => (OWN_SEQUENCES.has(part) ? part : withoutControlSigns(part)))
    .join('');

export const print = (...lines: string[]): void => {
  process.stdout.write(lines.map((line) => `${shown(line)}\n`).join(''));
};

export const printJson = (value: unknown): void => print(JSON.stringify(value, null, 2));

export const note = (...lines: string[]): void => {
  process.stderr.write(lines.map((line) => `${shown(line)}\n`).join(''));
};

export const printList = <T>(
  format: 'pretty' | 'json',
  list: readonly T[],
  linesOf: (list: readonly T[]) => string[],
  nothing: string,
): void => {
  if (format === 'json') printJson(list);
  else if (list.length === 0) note(nothing);
  else print(...linesOf(list));
};

export const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

export const styled = (style: Style, text: string): string =>
  styleText(style, text, { stream: process.stdout });

export const columns = (given: readonly (readonly string[])[]): string[] => {
  // A line break in a cell would forge a row.
  const rows = given.map((row) => row.map((cell) => shown(cell).replace(/[\n\t]/g, ' ')));
  const widths: number[] = [];
  for (const row of rows) {
    for (const [at, cell] of row.entries()) widths[at] = Math.max(widths[at] ?? 0, cell.length);
  }
  return rows.map((row) =>
    row
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd(),
  );
};

export const table =
  <T>(cells: Readonly<Record<string, (row: T) => string>>) =>
  (rows: readonly T[]): string[] => {
    const lines = rows.map((row) => Object.values(cells).map((cell) => cell(row)));
    return columns([Object.keys(cells), ...lines]);
  };

/** The lines that apply: a condition that does not hold gives false or nothing. */
export const textsIn = (lines: readonly (string | false | undefined)[]): string[] =>
  lines.filter((line) => typeof line === 'string');

/** 1500 minor units in USD are `15.00 USD`. */
export const moneyText = (amount: number, currency: string): string =>
  `${(amount / 100).toFixed(2)} ${currency}`;

export const countOf = (n: number): string => n.toLocaleString('en-US');

export const count = (n: number, what: string): string => `${n} ${what}${n === 1 ? '' : 's'}`;

type ExitCode = 0 | 1 | 2 | 3;

/** `message` is the line for the user, with what to do next. */
export class CommandFailed extends Error {
  override name = 'CommandFailed';
  readonly exitCode: ExitCode;
  constructor(message: string, exitCode: ExitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

export class ServiceUnreachable extends CommandFailed {}

/** Throws CommandFailed, exit code 3, where the log that was read is not the one that was sealed last. */
export const failOnMisfit = ({ misfit }: { misfit?: string | undefined }): void => {
  if (misfit !== undefined) throw new CommandFailed(misfit, 3);
};
