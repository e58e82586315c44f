/** `payments token`: a token for one merchant, and nothing else on stdout (gaps §10). */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { SCOPES } from '../shared/http/auth/principal.ts';
import { verb } from './options.ts';
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
