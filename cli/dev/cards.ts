/** `payments cards`: the numbers that the simulated provider knows (gaps §13). */
import { Command } from 'commander';
import { TEST_CARDS } from '../../provider-simulator/test-cards.ts';
import { type Format, formatOption } from '../options.ts';
import { columns, print, printJson } from '../output.ts';

const HEADER = ['NUMBER', 'TOKEN', 'OUTCOME', 'FAILURE CODE'];

const printCards = ({ format }: { format: Format }): void => {
  const cards = TEST_CARDS.map(({ number, token, outcome, failureCode }) => {
    return { number, token, outcome, failureCode };
  });
  const rows = cards.map((one) => [
    one.number,
    one.token ?? '',
    one.outcome,
    one.failureCode ?? '',
  ]);
  if (format === 'json') printJson(cards);
  else print(...columns([HEADER, ...rows]));
};

export const cardsCommand = (): Command =>
  new Command('cards')
    .description('Lists the test cards of the simulated provider and what each of them does.')
    .addHelpText('after', '\nExample:\n  payments cards --format json')
    .addOption(formatOption())
    .action(printCards);
