/**
 * The key pair of the embedded mode (gaps §10): made on first start, kept in the data folder,
 * readable by its owner alone. Service and command line may both be the first to need it.
 */
import { readFileSync } from 'node:fs';
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
import { LOCAL_KEY_ALGORITHM, type SECRET_ALGORITHM } from '../../runtime/key-algorithms.ts';
import { addPrivateFile } from '../../runtime/private-files.ts';

const FILE = 'signing-key.json';

/** What signs a token: the local key pair, or a shared secret. */
export type Signer = {
  algorithm: typeof LOCAL_KEY_ALGORITHM | typeof SECRET_ALGORITHM;
  key: CryptoKey;
  keyId?: string;
};
export type LocalKeys = { signer: Signer; publicJwk: JWK };

const readKey = (path: string): JWK | undefined => {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as JWK;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new DataFolderRefused(`DATA_DIR: ${FILE} cannot be read`, { cause: error });
  }
};

const makeKey = async (): Promise<JWK> => {
  const { privateKey } = await generateKeyPair(LOCAL_KEY_ALGORITHM, { extractable: true });
  const jwk = await exportJWK(privateKey);
  return { ...jwk, alg: LOCAL_KEY_ALGORITHM, use: 'sig', kid: await calculateJwkThumbprint(jwk) };
};

/**
 * Opens the key pair of a data folder, and makes it when there is none. The folder has to exist.
 * Throws DataFolderRefused when the file is damaged, and what the file system throws.
 */
export const openLocalKeys = async (folder: string): Promise<LocalKeys> => {
  const path = join(folder, FILE);
  if (readKey(path) === undefined) await addPrivateFile(path, JSON.stringify(await makeKey()));
  const jwk = readKey(path);
  if (jwk?.kid === undefined) throw new DataFolderRefused(`DATA_DIR: ${FILE} holds no key`);
  const { d: _, ...publicJwk } = jwk;
  const key = (await importJWK(jwk, LOCAL_KEY_ALGORITHM)) as CryptoKey;
  return { signer: { algorithm: LOCAL_KEY_ALGORITHM, key, keyId: jwk.kid }, publicJwk };
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
  /** The person, for the audit trail; left out: the merchant is the actor, and no person. */
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
  const { merchantId, merchantClaim, subject, ttlSeconds, scope, issuer, audience } = claims;
  const nowSeconds = Math.floor(Date.now() / 1000);
  return new SignJWT({
    ...(subject !== undefined && { sub: subject }),
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
