/** `payments token`: a token for one merchant, and nothing else on stdout (decisions §10). */
import { Command, InvalidArgumentError, Option } from 'commander';
import { type Config, loadConfig } from '../shared/config.ts';
import { makeDataDir } from '../shared/data-dir.ts';
import { importSecret, openLocalKeys, type Signer, signToken } from '../shared/http/local-keys.ts';
import { CommandFailed } from './command-failed.ts';

type TokenOptions = { merchant: string; scope?: string; ttl: number };

const SECONDS_PER_UNIT: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86_400 };
const TTL_SECONDS_MAX = 366 * 86_400;

const ttlSeconds = (text: string): number => {
  const [, count, unit = 's'] = /^([1-9][0-9]{0,8})([smhd])?$/.exec(text) ?? [];
  const seconds = Number(count) * (SECONDS_PER_UNIT[unit] ?? 1);
  if (count === undefined || seconds > TTL_SECONDS_MAX) {
    throw new InvalidArgumentError('It must be a time such as 30s, 15m, 1h or 7d, at most 366d.');
  }
  return seconds;
};

const merchantId = (text: string): string => {
  if (text === '' || text.length > 255) throw new InvalidArgumentError('It must be 1 to 255 long.');
  return text;
};

const localSigner = async (dataDir: string): Promise<Signer> => {
  try {
    makeDataDir(dataDir);
    return (await openLocalKeys(dataDir)).signer;
  } catch (error) {
    const { code = 'it is damaged' } = error as NodeJS.ErrnoException;
    throw new CommandFailed(`DATA_DIR: the signing key in ${dataDir} cannot be used (${code})`);
  }
};

const signerOf = async ({ tokens: { keys }, dataDir }: Config): Promise<Signer> => {
  if (keys.kind === 'secret') return { algorithm: 'HS256', key: await importSecret(keys.secret) };
  if (keys.kind === 'local') return localSigner(dataDir);
  throw new CommandFailed(
    'only public keys are set (JWT_JWKS_URL, JWT_JWKS_FILE), so the issuer has to make the token',
  );
};

const makeToken = async (config: Config, options: TokenOptions): Promise<string> => {
  const { issuer, audience, merchantClaims } = config.tokens;
  return signToken(await signerOf(config), {
    merchantId: options.merchant,
    merchantClaim: merchantClaims[0] ?? 'merchant_id',
    ttlSeconds: options.ttl,
    scope: options.scope,
    issuer,
    audience,
  });
};

const printToken = async (options: TokenOptions): Promise<void> => {
  const result = loadConfig(process.env);
  if (!result.ok) throw new CommandFailed(result.problems.join('\npayments: '));
  for (const warning of result.config.warnings) process.stderr.write(`payments: ${warning}\n`);
  process.stdout.write(`${await makeToken(result.config, options)}\n`);
};

/** The verb `token`. */
export const tokenCommand = (): Command =>
  new Command('token')
    .description('Prints an access token, signed with JWT_SECRET or the key pair in DATA_DIR.')
    .option('--merchant <id>', 'the merchant it speaks for', merchantId, 'm_demo')
    .option('--scope <scopes>', 'rights, separated by spaces; left out: all of them')
    .addOption(
      new Option('--ttl <time>', 'how long it is good, such as 30s, 15m or 7d')
        .argParser(ttlSeconds)
        .default(3600, '1h'),
    )
    .addHelpText(
      'after',
      '\nExample:\n  payments token --merchant m_1 --scope "payments:read" --ttl 15m',
    )
    .action(printToken);
