/**
 * The command line `payments`: data on stdout, everything else on stderr. Exit code 0: done,
 * 1: failed, 2: wrong usage, 3: verification failed. Each verb is a file of this folder.
 */
import { type Command, CommanderError } from 'commander';
import { CommandFailed } from './command-failed.ts';
import { note } from './output.ts';
import { buildProgram } from './program.ts';

const HELP_CODES = ['commander.helpDisplayed', 'commander.help', 'commander.version'];

const program = await buildProgram(process.argv[2]);

// Without the override commander ends with exit code 1, not 2, for wrong usage.
const overrideExit = (command: Command): void => {
  command.exitOverride();
  command.commands.forEach(overrideExit);
};
overrideExit(program);

// A reader that ends early (`| head`) is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(0);
});

const exitCodeOf = (error: unknown): number => {
  if (error instanceof CommanderError) {
    // Help on request ends with 0; help in place of a verb means wrong usage.
    return HELP_CODES.includes(error.code) && error.exitCode === 0 ? 0 : 2;
  }
  if (!(error instanceof CommandFailed)) throw error;
  note(`payments: ${error.message}`);
  return error.exitCode;
};

const run = async (): Promise<number> => {
  if (process.argv.length <= 2) {
    program.outputHelp({ error: true });
    return 2;
  }
  return program.parseAsync().then(() => 0, exitCodeOf);
};

process.exitCode = await run();
