/**
 * How the verbs print: data on stdout, everything else on stderr. `--format pretty` is the default
 * in a pipe too, so that a command prints the same in a terminal and in a pipe; programs ask for
 * json. Colour only in a terminal, and not where NO_COLOR is set.
 */
import { styleText } from 'node:util';
import { Option } from 'commander';
import { withoutControlSigns } from '../shared/runtime/control-signs.ts';

/** `pretty` for people, `json` for programs. */
export type Format = 'pretty' | 'json';

/** The option that every verb with data has. */
export const formatOption = (): Option =>
  new Option('--format <format>', 'how to print').choices(['pretty', 'json']).default('pretty');

const STYLES = ['red', 'green', 'yellow', 'bold', 'dim'] as const;
type Style = (typeof STYLES)[number];

/** What those styles write before and after a text. */
const OWN_SEQUENCES: ReadonlySet<string> = new Set(
  STYLES.flatMap((style) => styleText(style, ' ', { validateStream: false }).split(' ')),
);
const SEQUENCE = /(\p{Cc}\[[0-9;]*m)/u;

/**
 * Stored texts may hold anything, so control signs are shown as escapes: all but the sequences of our
 * own styles. Others would hide what follows (`[8m`), and any control sign may stand before the `[`.
 */
const shown = (text: string): string =>
  text
    .split(SEQUENCE)
    .map((part) => (OWN_SEQUENCES.has(part) ? part : withoutControlSigns(part)))
    .join('');

/** Writes lines of data to stdout. */
export const print = (...lines: string[]): void => {
  process.stdout.write(lines.map((line) => `${shown(line)}\n`).join(''));
};

/** Writes a value to stdout as JSON, for programs. */
export const printJson = (value: unknown): void => print(JSON.stringify(value, null, 2));

/** Writes lines to stderr: progress, remarks, what to do next. */
export const note = (...lines: string[]): void => {
  process.stderr.write(lines.map((line) => `${shown(line)}\n`).join(''));
};

/** A text as one word of a shell. */
export const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** The text in a style, where stdout is a terminal with colours. */
export const styled = (style: Style, text: string): string =>
  styleText(style, text, { stream: process.stdout });

/** Rows as lines: left-aligned columns, two spaces apart, without trailing spaces. */
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

/** Minor units as money: 1500 in USD is `15.00 USD`. */
export const money = (amountMinor: number, currency: string): string =>
  `${(amountMinor / 100).toFixed(2)} ${currency}`;

/** A number with its thousands apart: `12,500`. */
export const counted = (n: number): string => n.toLocaleString('en-US');

/** A number of things: `1 difference`, `2 differences`. */
export const count = (n: number, what: string): string => `${n} ${what}${n === 1 ? '' : 's'}`;
