/**
 * The key pair of the embedded mode (gaps §10): made on first start, kept in the data folder,
 * readable by its owner alone. Service and command line may both be the first to need it.
 */
import { randomUUID } from 'node:crypto';
import { linkSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type CryptoKey,
  calculateJwkThumbprint,
  exportJWK,
  generateKeyPair,
  importJWK,
  type JWK,
  SignJWT,
} from 'jose';
import { DataFolderRefused } from '../../runtime/data-folder.ts';

const FILE = 'signing-key.json';

/** What signs a token: the local key pair, or a shared secret. */
export type Signer = { algorithm: 'ES256' | 'HS256'; key: CryptoKey; keyId?: string };
export type LocalKeys = { signer: Signer; publicJwk: JWK };

const readKey = (path: string): JWK | undefined => {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as JWK;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new DataFolderRefused(`DATA_DIR: ${FILE} cannot be read`, { cause: error });
  }
};

/** Writes the key unless another process was faster: a link never replaces a file. */
const storeKey = (path: string, jwk: JWK): void => {
  const draft = `${path}.${randomUUID()}`;
  writeFileSync(draft, JSON.stringify(jwk), { mode: 0o600, flag: 'wx', flush: true });
  try {
    linkSync(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    unlinkSync(draft);
  }
};

const makeKey = async (): Promise<JWK> => {
  const { privateKey } = await generateKeyPair('ES256', { extractable: true });
  const jwk = await exportJWK(privateKey);
  return { ...jwk, alg: 'ES256', use: 'sig', kid: await calculateJwkThumbprint(jwk) };
};

/**
 * Opens the key pair of a data folder, and makes it when there is none. The folder has to exist.
 * Throws DataFolderRefused when the file is damaged, and what the file system throws.
 */
export const openLocalKeys = async (folder: string): Promise<LocalKeys> => {
  const path = join(folder, FILE);
  if (readKey(path) === undefined) storeKey(path, await makeKey());
  const jwk = readKey(path);
  if (jwk?.kid === undefined) throw new DataFolderRefused(`DATA_DIR: ${FILE} holds no key`);
  const { d: _, ...publicJwk } = jwk;
  const key = (await importJWK(jwk, 'ES256')) as CryptoKey;
  return { signer: { algorithm: 'ES256', key, keyId: jwk.kid }, publicJwk };
};

/** A shared secret as a key: imported once, because raw bytes cost more on every use. */
export const importSecret = (secret: string): Promise<CryptoKey> =>
  crypto.subtle.importKey(
    'raw',
    new TextEncoder().encode(secret),
    { name: 'HMAC', hash: 'SHA-256' },
    false,
    ['sign', 'verify'],
  );

export type TokenClaims = {
  merchantId: string;
  /** Who asks, for the audit trail; left out: the merchant. */
  subject?: string | undefined;
  /** The claim that names the merchant: the first of JWT_MERCHANT_CLAIM. */
  merchantClaim: string;
  ttlSeconds: number;
  /** Absent: all rights of the merchant. */
  scope?: string | undefined;
  issuer?: string | undefined;
  audience?: string | undefined;
};

/** A token for a merchant, good from now on for `ttlSeconds`. */
export const signToken = (signer: Signer, claims: TokenClaims): Promise<string> => {
  const { merchantId, merchantClaim, ttlSeconds, scope, issuer, audience } = claims;
  const nowSeconds = Math.floor(Date.now() / 1000);
  return new SignJWT({
    sub: claims.subject ?? merchantId,
    [merchantClaim]: merchantId,
    iat: nowSeconds,
    exp: nowSeconds + ttlSeconds,
    ...(scope !== undefined && { scope }),
    ...(issuer !== undefined && { iss: issuer }),
    ...(audience !== undefined && { aud: audience }),
  })
    .setProtectedHeader({
      alg: signer.algorithm,
      typ: 'JWT',
      ...(signer.keyId !== undefined && { kid: signer.keyId }),
    })
    .sign(signer.key);
};
