/** The settings as the verbs need them, tokens signed with their keys (gaps §10), and the key that seals a log. */
import { createPublicKey, type KeyObject } from 'node:crypto';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type KeyPlace, keyPlaceOf, SEALING_KEY_NAME } from '../audit/seals/key.ts';
import { publicKeyOf } from '../audit/seals/seals.ts';
import {
  importSecret,
  openLocalKeys,
  SIGNING_KEY_NAME,
  type Signer,
  signToken,
} from '../shared/http/auth/local-keys.ts';
import type { Config } from '../shared/runtime/config.ts';
import { orElse } from '../shared/runtime/error-text.ts';
import { loadConfig } from '../shared/runtime/load-config.ts';
import { makeDataDir } from '../shared/runtime/private-files.ts';
import { SECRET_ALGORITHM } from '../shared/runtime/settings/table.ts';
import { CommandFailed } from './output.ts';

export const readSettings = (): Config => {
  const result = loadConfig(process.env);
  if (!result.ok) throw new CommandFailed(result.problems.join('\npayments: '));
  return result.config;
};

/** Throws CommandFailed where it is there and this user may not read it: it is not damaged, nor held. */
export const requireReadable = (path: string): void => {
  try {
    closeSync(openSync(path, 'r'));
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (['EACCES', 'EPERM'].includes(code))
      throw new CommandFailed(
        `${path} cannot be read by this user (${code}), whose id is ${process.geteuid?.()}`,
      );
  }
};

/** Undefined where there is no such file. Throws CommandFailed as requireReadable. */
export const secretIn = (file: string): string | undefined => {
  requireReadable(file);
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined;
};

const localSigner = async (dataDir: string): Promise<Signer> => {
  try {
    makeDataDir(dataDir);
    return (await openLocalKeys(dataDir)).signer;
  } catch (error) {
    requireReadable(join(dataDir, SIGNING_KEY_NAME));
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

type TokenOptions = { merchant: string } & Pick<
  Parameters<typeof signToken>[1],
  'subject' | 'scope' | 'ttlSeconds'
>;

/** A token signed with JWT_SECRET or the key pair in DATA_DIR. Throws CommandFailed. */
export const makeToken = async (
  config: Config,
  { merchant: merchantId, ...options }: TokenOptions,
): Promise<string> => {
  const { issuer, audience, merchantClaims } = config.tokens;
  const [merchantClaim = 'merchant_id'] = merchantClaims;
  const claims = { ...options, merchantId, merchantClaim, issuer, audience };
  return signToken(await signerOf(config), claims);
};

export const keyPlaceIn = (folder: string): KeyPlace => {
  const config = readSettings();
  const keyFile = config.seals.keyFile ?? join(folder, SEALING_KEY_NAME);
  return keyPlaceOf(config, config.eventStoreDbUrl !== undefined, keyFile);
};

/** From a PEM file with the public or the private key. Throws CommandFailed. */
export const readPublicKey = (file: string): KeyObject => {
  requireReadable(file);
  if (!existsSync(file)) throw new CommandFailed(`${file} does not exist`);
  // The parser's message may quote the file.
  const key = orElse(undefined, () => createPublicKey(readFileSync(file, 'utf8')));
  if (key?.asymmetricKeyType === 'ed25519') return key;
  throw new CommandFailed(
    `${file} holds no Ed25519 key in PEM that can be read; next: payments keys show`,
  );
};

export const publicKeyIn = (file: string | undefined): string | undefined =>
  file === undefined ? undefined : publicKeyOf(readPublicKey(file));
