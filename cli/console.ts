/** `payments console`: the address of the console, with a token that the page takes. */
import { Command, Option } from 'commander';
import { givenToken, openClient } from './client.ts';
import { print } from './output.ts';
import { makeToken, readSettings } from './settings.ts';

const TTL_SECONDS = 3600;

/** What each reader does, as scopes. */
const SCOPES = {
  auditor: 'audit:read',
  operator: 'audit:read ops:admin ops:resolve',
  merchant: 'payments:read webhooks:write',
} as const;

type Options = { as: keyof typeof SCOPES; merchant?: string; subject?: string };

const tokenOf = async ({ as, merchant, subject }: Options): Promise<string> =>
  givenToken(merchant) ??
  makeToken(readSettings(), {
    merchant: merchant ?? (as === 'merchant' ? 'm_demo' : '*'),
    subject,
    scope: SCOPES[as],
    ttlSeconds: TTL_SECONDS,
  });

/** The token is in the fragment: browsers never send it, and the page clears it from the address. */
const printAddress = async (options: Options): Promise<void> => {
  const { url } = await openClient();
  print(`${url}/console#token=${await tokenOf(options)}`);
};

/** The verb `console`. */
export const consoleCommand = (): Command =>
  new Command('console')
    .description('Prints the address of the console with a token in it, good for an hour.')
    .addOption(
      new Option('--as <reader>', 'what the token may do')
        .choices(Object.keys(SCOPES))
        .default('operator'),
    )
    .option('--merchant <id>', 'of this merchant alone; left out: all, and m_demo for a merchant')
    .option('--subject <name>', 'the actor, for the audit trail; left out: the merchant')
    .addHelpText('after', '\nExample:\n  open "$(payments console)"')
    .action(printAddress);
