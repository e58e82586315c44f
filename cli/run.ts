/** The verbs of the command line, and one run of it from its arguments to its exit code. */
import { Command, CommanderError } from 'commander';
import manifest from '../package.json' with { type: 'json' };
import { CommandFailed, failOnMisfit, note, noteMisfit } from './output.ts';

/** In the order of the help; each verb is loaded when it is named. */
const VERBS: Readonly<Record<string, () => Promise<Command>>> = {
  token: async () => (await import('./token.ts')).tokenCommand(),
  cards: async () => (await import('./dev/cards.ts')).cardsCommand(),
  docs: async () => (await import('./pages.ts')).docsCommand(),
  console: async () => (await import('./pages.ts')).consoleCommand(),
  trigger: async () => (await import('./dev/trigger.ts')).triggerCommand(),
  seed: async () => (await import('./dev/seed.ts')).seedCommand(),
  events: async () => (await import('./events.ts')).eventsCommand(),
  find: async () => (await import('./find.ts')).findCommand(),
  verify: async () => (await import('./verify.ts')).verifyCommand(),
  export: async () => (await import('./export.ts')).exportCommand(),
  listen: async () => (await import('./listen.ts')).listenCommand(),
  webhooks: async () => (await import('./webhooks.ts')).webhooksCommand(),
  explain: async () => (await import('./explain.ts')).explainCommand(),
  reconcile: async () => (await import('./reconcile.ts')).reconcileCommand(),
  attention: async () => (await import('./attention.ts')).attentionCommand(),
  unresolved: async () => (await import('./unresolved.ts')).unresolvedCommand(),
  resolve: async () => (await import('./unresolved.ts')).resolveCommand(),
  parked: async () => (await import('./parked.ts')).parkedCommand(),
  projections: async () => (await import('./projections.ts')).projectionsCommand(),
  doctor: async () => (await import('./doctor.ts')).doctorCommand(),
  backup: async () => (await import('./backup.ts')).backupCommand(),
  topics: async () => (await import('./topics.ts')).topicsCommand(),
  keys: async () => (await import('./keys.ts')).keysCommand(),
};

export const buildProgram = async (requested?: string): Promise<Command> => {
  noteMisfit(undefined);
  const program = new Command('payments')
    .description('The command line of the card payment service.')
    .version(`payments ${manifest.version}`, '--version', 'print the version')
    .hook('postAction', failOnMisfit)
    .addHelpText('after', '\nExample:\n  export TOKEN=$(npx payments token)');
  const known =
    requested !== undefined && Object.hasOwn(VERBS, requested) ? VERBS[requested] : undefined;
  for (const make of known === undefined ? Object.values(VERBS) : [known])
    program.addCommand((await make()).copyInheritedSettings(program));
  return program;
};

const HELP_CODES = ['commander.helpDisplayed', 'commander.help', 'commander.version'];

// By itself commander ends with exit code 1, not 2, for wrong usage.
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

/** Runs `payments <args>` in this process and gives the exit code. Throws what no verb expected. */
export const runCommandLine = async (args: readonly string[]): Promise<number> => {
  const program = await buildProgram(args[0]);
  overrideExit(program);
  if (args.length === 0) {
    program.outputHelp({ error: true });
    return 2;
  }
  return program.parseAsync(args, { from: 'user' }).then(() => 0, exitCodeOf);
};
