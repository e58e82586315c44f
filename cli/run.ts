/** The verbs of the command line, and one run of it from its arguments to its exit code. */
import { Command, CommanderError } from 'commander';
import { VERSION } from '../shared/runtime/version.ts';
import { CommandFailed, note } from './output.ts';

/** By the heading of the help, and in its order; each verb is loaded when it is named. */
const VERBS: Readonly<Record<string, Readonly<Record<string, () => Promise<Command>>>>> = {
  'Start here:': {
    token: async () => (await import('./token.ts')).tokenCommand(),
    console: async () => (await import('./token.ts')).consoleCommand(),
    docs: async () => (await import('./token.ts')).docsCommand(),
    doctor: async () => (await import('./doctor.ts')).doctorCommand(),
  },
  'For auditors:': {
    find: async () => (await import('./find.ts')).findCommand(),
    events: async () => (await import('./events.ts')).eventsCommand(),
    explain: async () => (await import('./explain.ts')).explainCommand(),
    verify: async () => (await import('./verify.ts')).verifyCommand(),
    export: async () => (await import('./export.ts')).exportCommand(),
    reconcile: async () => (await import('./reconcile.ts')).reconcileCommand(),
  },
  'For operators:': {
    attention: async () => (await import('./attention.ts')).attentionCommand(),
    unresolved: async () => (await import('./unresolved.ts')).unresolvedCommand(),
    resolve: async () => (await import('./unresolved.ts')).resolveCommand(),
    erase: async () => (await import('./erase.ts')).eraseCommand(),
    parked: async () => (await import('./parked.ts')).parkedCommand(),
    projections: async () => (await import('./projections.ts')).projectionsCommand(),
    topics: async () => (await import('./topics.ts')).topicsCommand(),
    backup: async () => (await import('./backup.ts')).backupCommand(),
    restore: async () => (await import('./backup.ts')).restoreCommand(),
    repair: async () => (await import('./backup.ts')).repairCommand(),
    keys: async () => (await import('./keys.ts')).keysCommand(),
  },
  'For development:': {
    cards: async () => (await import('./dev/trigger.ts')).cardsCommand(),
    trigger: async () => (await import('./dev/trigger.ts')).triggerCommand(),
    seed: async () => (await import('./dev/seed.ts')).seedCommand(),
    listen: async () => (await import('./listen.ts')).listenCommand(),
    webhooks: async () => (await import('./webhooks.ts')).webhooksCommand(),
  },
};

export const buildProgram = async (requested = ''): Promise<Command> => {
  const program = new Command('payments')
    .description('The command line of the card payment service.')
    .version(`payments ${VERSION}`, '--version', 'print the version')
    .addHelpText('after', '\nExample:\n  export TOKEN=$(npx payments token)');
  const isKnown = Object.values(VERBS).some((verbs) => Object.hasOwn(verbs, requested));
  for (const [heading, verbs] of Object.entries(VERBS)) {
    for (const [name, make] of Object.entries(verbs)) {
      if (isKnown && name !== requested) continue;
      program.addCommand((await make()).helpGroup(heading).copyInheritedSettings(program));
    }
  }
  return program;
};

// Commander's own exit code for wrong usage is 1, not 2.
const overrideExit = (command: Command): void => {
  command.exitOverride();
  command.commands.forEach(overrideExit);
};

const exitCodeOf = (error: unknown): number => {
  if (error instanceof CommanderError) {
    // Help on request ends with 0; help in place of a verb means wrong usage.
    return error.exitCode === 0 ? 0 : 2;
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
