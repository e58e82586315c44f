/** `payments cards`: the numbers that the simulated provider knows (gaps §13). */
import { Command } from 'commander';
import { TEST_CARDS } from '../../provider-simulator/test-cards.ts';
import { columns, type Format, formatOption, print, printJson } from '../output.ts';

const HEADER = ['NUMBER', 'TOKEN', 'OUTCOME', 'FAILURE CODE'];

const printCards = ({ format }: { format: Format }): void => {
  const cards = TEST_CARDS.map(({ number, token, outcome, failureCode }) => ({
    number,
    token,
    outcome,
    failureCode,
  }));
  if (format === 'json') {
    printJson(cards);
    return;
  }
  const rows = cards.map(({ number, token = '', outcome, failureCode = '' }) => [
    number,
    token,
    outcome,
    failureCode,
  ]);
  print(...columns([HEADER, ...rows]));
};

/** The verb `cards`. */
export const cardsCommand = (): Command =>
  new Command('cards')
    .description('Lists the test cards of the simulated provider and what each of them does.')
    .addOption(formatOption())
    .addHelpText('after', '\nExample:\n  payments cards --format json')
    .action(printCards);
