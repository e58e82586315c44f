/** `payments console` and `payments docs`: addresses of pages, with a token that the page takes. */
import { type Command, Option } from 'commander';
import { givenToken, openClient } from './client.ts';
import { verb } from './options.ts';
import { print } from './output.ts';
import { makeToken, readSettings } from './settings.ts';

const TTL_SECONDS = 3600;

type Claims = { merchant: string; scope: string; subject?: string | undefined };

/** The token is in the fragment: browsers never send it, and the page clears it from the address. */
const printAddress = async (page: string, given: string | undefined, claims: Claims) => {
  const { url } = await openClient();
  const signed = () => makeToken(readSettings(), { ...claims, ttlSeconds: TTL_SECONDS });
  print(`${url}/${page}#token=${given ?? (await signed())}`);
};

const SCOPES = {
  auditor: 'audit:read',
  operator: 'audit:read ops:admin ops:resolve',
  merchant: 'payments:read webhooks:write',
} as const;

type Options = { as: keyof typeof SCOPES; merchant?: string; subject?: string };

const printConsole = ({ as, merchant, subject }: Options): Promise<void> =>
  printAddress('console', givenToken(merchant), {
    merchant: merchant ?? (as === 'merchant' ? 'm_demo' : '*'),
    subject,
    scope: SCOPES[as],
  });

export const consoleCommand = (): Command =>
  verb('console', 'open "$(payments console)"')
    .description('Prints the address of the console with a token in it, good for an hour.')
    .addOption(
      new Option('--as <reader>', 'what the token may do')
        .choices(Object.keys(SCOPES))
        .default('operator'),
    )
    .option('--merchant <id>', 'of this merchant alone; left out: all, and m_demo for a merchant')
    .option('--subject <name>', 'the actor, for the audit trail; left out: the merchant')
    .action(printConsole);

/** Requests of both API documents can be tried on the page. */
const DOCS_SCOPE = 'payments:read payments:write audit:read';

export const docsCommand = (): Command =>
  verb('docs', 'open "$(payments docs)"')
    .description('Prints the address of the API page with a token in it, good for an hour.')
    .option('--merchant <id>', 'the merchant of the token', 'm_demo')
    .option('--scope <scopes>', 'the scopes of the token, separated by spaces', DOCS_SCOPE)
    .action((claims: Claims) => printAddress('docs', givenToken(undefined), claims));
