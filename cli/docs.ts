/** `payments docs`: the address of the API page, with a token that the page fills in. */
import { Command } from 'commander';
import { givenToken, openClient } from './client.ts';
import { print } from './output.ts';
import { makeToken, readSettings } from './settings.ts';

type DocsOptions = { merchant: string; scope: string };

const TTL_SECONDS = 3600;
/** The page shows both API documents, and requests of both can be tried. */
const SCOPE = 'payments:read payments:write audit:read';

const tokenOf = async ({ merchant, scope }: DocsOptions): Promise<string> =>
  givenToken(undefined) ?? makeToken(readSettings(), { merchant, scope, ttlSeconds: TTL_SECONDS });

/** The token is in the fragment: browsers never send it, and the page clears it from the address. */
const printAddress = async (options: DocsOptions): Promise<void> => {
  const { url } = await openClient();
  print(`${url}/docs#token=${await tokenOf(options)}`);
};

/** The verb `docs`. */
export const docsCommand = (): Command =>
  new Command('docs')
    .description('Prints the address of the API page with a token in it, good for an hour.')
    .option('--merchant <id>', 'the merchant of the token', 'm_demo')
    .option('--scope <scopes>', 'the scopes of the token, separated by spaces', SCOPE)
    .addHelpText('after', '\nExample:\n  open "$(payments docs)"')
    .action(printAddress);
