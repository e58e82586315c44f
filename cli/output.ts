/**
 * How the verbs print: data on stdout, everything else on stderr. `--format pretty` is the default
 * in a pipe too, so that what was tried in a terminal does not change when it is piped; whoever
 * wants to compute with it asks for json. Colour only in a terminal, and not where NO_COLOR is set.
 */
import { styleText } from 'node:util';
import { Option } from 'commander';

export type Format = 'pretty' | 'json';

/** The option that every verb with data has. */
export const formatOption = (): Option =>
  new Option('--format <format>', 'how to print').choices(['pretty', 'json']).default('pretty');

const STYLE = /^\p{Cc}\[[0-9;]*m$/u;
/** Signs that a terminal would obey, a style as a whole. */
const OBEYED = /\p{Cc}\[[0-9;]*m|(?![\n\t])\p{Cc}/gu;

const spelled = (sign: string): string =>
  `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}${sign.slice(1)}`;

/** Stored texts may hold anything: but for styles, what a terminal would obey is spelled out. */
const shown = (text: string): string =>
  text.replace(OBEYED, (sign) => (STYLE.test(sign) ? sign : spelled(sign)));

/** Writes lines of data. */
export const print = (...lines: string[]): void => {
  process.stdout.write(lines.map((line) => `${shown(line)}\n`).join(''));
};

/** Writes a value as JSON, for programs. */
export const printJson = (value: unknown): void => print(JSON.stringify(value, null, 2));

/** Writes lines about the work itself: progress, remarks, what to do next. */
export const note = (...lines: string[]): void => {
  process.stderr.write(lines.map((line) => `${shown(line)}\n`).join(''));
};

type Style = Parameters<typeof styleText>[0];

/** The text in a style, where stdout takes it. */
export const styled = (style: Style, text: string): string =>
  styleText(style, text, { stream: process.stdout });

/** Left-aligned columns, two spaces apart, without trailing ones. */
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
