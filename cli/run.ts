/** One run of the command line, from its arguments to its exit code. */
import { type Command, CommanderError } from 'commander';
import { CommandFailed } from './command-failed.ts';
import { note } from './output.ts';
import { buildProgram } from './program.ts';

const HELP_CODES = ['commander.helpDisplayed', 'commander.help', 'commander.version'];

// Without the override commander ends with exit code 1, not 2, for wrong usage.
const overrideExit = (command: Command): void => {
  command.exitOverride();
  command.commands.forEach(overrideExit);
};

const exitCodeOf = (error: unknown): number => {
  if (error instanceof CommanderError) {
    // Help on request ends with 0; help in place of a verb means wrong usage.
    return HELP_CODES.includes(error.code) && error.exitCode === 0 ? 0 : 2;
  }
  if (!(error instanceof CommandFailed)) throw error;
  note(`payments: ${error.message}`);
  return error.exitCode;
};

/**
 * Runs `payments <args>` with the environment and the streams of this process, and gives the exit
 * code. Throws what no verb expected.
 */
export const runCommandLine = async (args: readonly string[]): Promise<number> => {
  const program = await buildProgram(args[0]);
  overrideExit(program);
  if (args.length === 0) {
    program.outputHelp({ error: true });
    return 2;
  }
  return program.parseAsync(args, { from: 'user' }).then(() => 0, exitCodeOf);
};
