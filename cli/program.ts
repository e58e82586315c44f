/** The verbs of the command line, each in a file of this folder that is loaded when it is named. */
import { Command } from 'commander';
import manifest from '../package.json' with { type: 'json' };
import { failOnMisfit, noteMisfit } from './log-misfit.ts';

/** In the order of the help; a new verb is one line here and one file beside it. */
const VERBS: Readonly<Record<string, () => Promise<Command>>> = {
  token: async () => (await import('./token.ts')).tokenCommand(),
  cards: async () => (await import('./dev/cards.ts')).cardsCommand(),
  docs: async () => (await import('./docs.ts')).docsCommand(),
  console: async () => (await import('./console.ts')).consoleCommand(),
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
  unresolved: async () => (await import('./unresolved.ts')).unresolvedCommand(),
  resolve: async () => (await import('./resolve.ts')).resolveCommand(),
  parked: async () => (await import('./parked.ts')).parkedCommand(),
  projections: async () => (await import('./projections.ts')).projectionsCommand(),
  doctor: async () => (await import('./doctor.ts')).doctorCommand(),
  backup: async () => (await import('./backup.ts')).backupCommand(),
  topics: async () => (await import('./topics.ts')).topicsCommand(),
  keys: async () => (await import('./keys.ts')).keysCommand(),
};

/**
 * The command line, before it runs: with the requested verb alone, or with all verbs for the help and
 * for a verb that does not exist.
 */
export const buildProgram = async (requested?: string): Promise<Command> => {
  noteMisfit(undefined);
  const program = new Command('payments')
    .description('The command line of the card payment service.')
    .version(`payments ${manifest.version}`, '--version', 'print the version')
    .hook('postAction', failOnMisfit)
    .addHelpText('after', '\nExample:\n  export TOKEN=$(npx payments token)');
  const known =
    requested !== undefined && Object.hasOwn(VERBS, requested) ? VERBS[requested] : undefined;
  for (const make of known === undefined ? Object.values(VERBS) : [known]) {
    program.addCommand((await make()).copyInheritedSettings(program));
  }
  return program;
};
