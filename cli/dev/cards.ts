/** `payments cards`: the numbers that the simulated provider knows (gaps §13). */
import type { Command } from 'commander';
import { TEST_CARDS } from '../../providers/simulator/test-cards.ts';
import { type Format, formatOption, verb } from '../options.ts';
import { print, printJson, table } from '../output.ts';

const cardsTable = table<(typeof TEST_CARDS)[number]>({
  NUMBER: ({ number }) => number,
  TOKEN: ({ token = '' }) => token,
  OUTCOME: ({ outcome }) => outcome,
  'FAILURE CODE': ({ failureCode = '' }) => failureCode,
});

const printCards = ({ format }: { format: Format }): void => {
  if (format === 'json') printJson(TEST_CARDS.map(({ behaviour: _, ...shown }) => shown));
  else print(...cardsTable(TEST_CARDS));
};

export const cardsCommand = (): Command =>
  verb('cards', 'payments cards --format json')
    .description('Lists the test cards of the simulated provider and what each of them does.')
    .addOption(formatOption())
    .action(printCards);
