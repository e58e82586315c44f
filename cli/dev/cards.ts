/** `payments cards`: the numbers that the simulated provider knows (gaps §13). */
import { Command, Option } from 'commander';
import { TEST_CARDS, type TestCard } from '../../provider-simulator/test-cards.ts';

const COLUMNS = ['number', 'outcome', 'failureCode'] as const;
type Row = Record<(typeof COLUMNS)[number], string>;

const rowOf = ({ number, outcome, failureCode }: TestCard): Row => ({
  number,
  outcome,
  failureCode: failureCode ?? '',
});

/** Left-aligned columns under their names, without trailing spaces. */
const tableOf = (rows: Row[]): string => {
  const header: Row = { number: 'NUMBER', outcome: 'OUTCOME', failureCode: 'FAILURE CODE' };
  const all = [header, ...rows];
  const widths = COLUMNS.map((name) => Math.max(...all.map((row) => row[name].length)));
  const lineOf = (row: Row) =>
    COLUMNS.map((name, at) => row[name].padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd();
  return all.map(lineOf).join('\n');
};

const jsonOf = (cards: readonly TestCard[]): string =>
  JSON.stringify(
    cards.map(({ number, outcome, failureCode }) => ({ number, outcome, failureCode })),
    null,
    2,
  );

const printCards = ({ format }: { format: string }): void => {
  const text = format === 'json' ? jsonOf(TEST_CARDS) : tableOf(TEST_CARDS.map(rowOf));
  process.stdout.write(`${text}\n`);
};

/** The verb `cards`. */
export const cardsCommand = (): Command =>
  new Command('cards')
    .description('Lists the test cards of the simulated provider and what each of them does.')
    .addOption(
      new Option('--format <format>', 'how to print').choices(['pretty', 'json']).default('pretty'),
    )
    .addHelpText('after', '\nExample:\n  payments cards --format json')
    .action(printCards);
