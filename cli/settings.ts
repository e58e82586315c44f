/** The settings as the verbs need them, and tokens signed with their keys (gaps §10). */
import {
  importSecret,
  openLocalKeys,
  type Signer,
  signToken,
} from '../shared/http/auth/local-keys.ts';
import type { Config } from '../shared/runtime/config.ts';
import { SECRET_ALGORITHM } from '../shared/runtime/key-algorithms.ts';
import { loadConfig } from '../shared/runtime/load-config.ts';
import { makeDataDir } from '../shared/runtime/private-files.ts';
import { CommandFailed } from './command-failed.ts';

/** Throws CommandFailed with every problem. */
export const readSettings = (): Config => {
  const result = loadConfig(process.env);
  if (!result.ok) throw new CommandFailed(result.problems.join('\npayments: '));
  return result.config;
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
  if (keys.kind === 'secret')
    return { algorithm: SECRET_ALGORITHM, key: await importSecret(keys.secret) };
  if (keys.kind === 'local') return localSigner(dataDir);
  throw new CommandFailed(
    'only public keys are set (JWT_JWKS_URL, JWT_JWKS_FILE), so the issuer has to make the token',
  );
};

type TokenOptions = {
  merchant: string;
  subject?: string | undefined;
  scope?: string | undefined;
  ttlSeconds: number;
};

/**
 * A token signed with JWT_SECRET or the key pair in DATA_DIR. By default `subject`, the actor, is the merchant,
 * and `scope`, separated by spaces, all scopes of a merchant. Throws CommandFailed.
 */
export const makeToken = async (config: Config, options: TokenOptions): Promise<string> => {
  const { issuer, audience, merchantClaims } = config.tokens;
  return signToken(await signerOf(config), {
    merchantId: options.merchant,
    subject: options.subject,
    merchantClaim: merchantClaims[0] ?? 'merchant_id',
    ttlSeconds: options.ttlSeconds,
    scope: options.scope,
    issuer,
    audience,
  });
};
