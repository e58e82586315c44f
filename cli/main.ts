/**
 * The command line `payments`: data on stdout, everything else on stderr. Exit code 0: done,
 * 1: failed, 2: wrong usage.
 */
import { Command, CommanderError } from 'commander';
import { cardsCommand } from './cards.ts';
import { CommandFailed } from './command-failed.ts';
import { tokenCommand } from './token.ts';

const HELP_CODES = ['commander.helpDisplayed', 'commander.help', 'commander.version'];

const program = new Command('payments')
  .description('The command line of the card payment service.')
  .addHelpText('after', '\nExample:\n  export TOKEN=$(npx payments token)');
for (const command of [tokenCommand(), cardsCommand()]) {
  program.addCommand(command.copyInheritedSettings(program));
}
// An override of the exit, else commander ends with 1 where the usage was wrong.
for (const command of [program, ...program.commands]) command.exitOverride();

const exitCodeOf = (error: unknown): number => {
  if (error instanceof CommanderError) return HELP_CODES.includes(error.code) ? error.exitCode : 2;
  if (!(error instanceof CommandFailed)) throw error;
  process.stderr.write(`payments: ${error.message}\n`);
  return 1;
};

const run = async (): Promise<number> => {
  if (process.argv.length <= 2) {
    program.outputHelp({ error: true });
    return 2;
  }
  return program.parseAsync().then(() => 0, exitCodeOf);
};

process.exitCode = await run();
