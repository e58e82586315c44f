/** `payments token`: only a token on stdout (gaps §10); `payments console`, `docs`: page addresses with one. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { SCOPES } from '../shared/http/request.ts';
import { givenToken, openClient } from './client.ts';
import { verb } from './options.ts';
import { print } from './output.ts';
import { makeToken, readSettings } from './settings.ts';

type Options = { merchant: string; subject?: string; scope?: string; ttl: number };

const SECONDS_PER_UNIT: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86_400 };
const TTL_SECONDS_MAX = 366 * 86_400;

const ttlSeconds = (text: string): number => {
  const [, count, unit = 's'] = /^([1-9][0-9]{0,8})([smhd])?$/.exec(text) ?? [];
  const seconds = Number(count) * (SECONDS_PER_UNIT[unit] ?? 1);
  if (count === undefined || seconds > TTL_SECONDS_MAX)
    throw new InvalidArgumentError('It must be a time such as 30s, 15m, 1h or 7d, at most 366d.');
  return seconds;
};

const claimText = (text: string): string => {
  if (text !== '' && text.length <= 255) return text;
  throw new InvalidArgumentError('It must be 1 to 255 characters long.');
};

/** A mistyped scope would be a token that every route rejects. */
const scopesText = (text: string): string => {
  const known: readonly string[] = SCOPES;
  const unknown = text.split(' ').find((name) => name !== '' && !known.includes(name));
  if (unknown === undefined) return text;
  throw new InvalidArgumentError(`There is no scope ${unknown}; there are ${SCOPES.join(', ')}.`);
};

const printToken = async ({ merchant, subject, scope, ttl }: Options): Promise<void> => {
  const config = readSettings();
  for (const warning of config.warnings) process.stderr.write(`payments: ${warning}\n`);
  const token = await makeToken(config, { merchant, subject, scope, ttlSeconds: ttl });
  process.stdout.write(`${token}\n`);
};

export const tokenCommand = (): Command =>
  verb('token', 'payments token --merchant m_1 --scope "payments:read" --ttl 15m')
    .description('Prints an access token, signed with JWT_SECRET or the key pair in DATA_DIR.')
    .option(
      '--merchant <id>',
      'the merchant of the token; * for all merchants',
      claimText,
      'm_demo',
    )
    .option('--subject <name>', 'the actor, for the audit trail; left out: the merchant', claimText)
    .option(
      '--scope <scopes>',
      'the scopes, separated by spaces; left out: all scopes of a merchant',
      scopesText,
    )
    .addOption(
      new Option('--ttl <time>', 'how long the token is valid, such as 30s, 15m or 7d')
        .argParser(ttlSeconds)
        .default(3600, '1h'),
    )
    .action(printToken);

const TTL_SECONDS = 3600;

type Claims = { merchant: string; scope: string; subject?: string | undefined };

/** The token is in the fragment: browsers never send it, and the page clears it from the address. */
const printAddress = async (page: string, given: string | undefined, claims: Claims) => {
  const { url } = await openClient();
  const signed = () => makeToken(readSettings(), { ...claims, ttlSeconds: TTL_SECONDS });
  print(`${url}/${page}#token=${given ?? (await signed())}`);
};

const SCOPES_OF = {
  auditor: 'audit:read',
  operator: 'audit:read ops:admin ops:resolve',
  merchant: 'payments:read webhooks:write',
} as const;

type ConsoleOptions = { as: keyof typeof SCOPES_OF; merchant?: string; subject?: string };

const printConsole = ({ as, merchant, subject }: ConsoleOptions): Promise<void> =>
  printAddress('console', givenToken(merchant), {
    merchant: merchant ?? (as === 'merchant' ? 'm_demo' : '*'),
    subject,
    scope: SCOPES_OF[as],
  });

export const consoleCommand = (): Command =>
  verb('console', 'open "$(payments console)"')
    .description('Prints the address of the console with a token in it, good for an hour.')
    .addOption(
      new Option('--as <reader>', 'what the token may do')
        .choices(Object.keys(SCOPES_OF))
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
