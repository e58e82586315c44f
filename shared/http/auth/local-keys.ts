/** The key pair of the embedded mode (gaps §10); service or command line makes it. */
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
import { addPrivateFile, DataFolderRefused } from '../../runtime/private-files.ts';
import { LOCAL_KEY_ALGORITHM, type SECRET_ALGORITHM } from '../../runtime/settings/table.ts';

/** Lies in the data folder of an embedded service (gaps §10). */
export const SIGNING_KEY_NAME = 'signing-key.json';

export type Signer = {
  algorithm: typeof LOCAL_KEY_ALGORITHM | typeof SECRET_ALGORITHM;
  key: CryptoKey;
  keyId?: string;
};

const readKey = (path: string): JWK | undefined => {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as JWK;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new DataFolderRefused(`DATA_DIR: ${SIGNING_KEY_NAME} cannot be read`, { cause: error });
  }
};

const makeKey = async (): Promise<JWK> => {
  const { privateKey } = await generateKeyPair(LOCAL_KEY_ALGORITHM, { extractable: true });
  const jwk = await exportJWK(privateKey);
  return { ...jwk, alg: LOCAL_KEY_ALGORITHM, use: 'sig', kid: await calculateJwkThumbprint(jwk) };
};

/** Makes the pair when there is none. Throws DataFolderRefused for a damaged file. */
export const openLocalKeys = async (folder: string) => {
  const path = join(folder, SIGNING_KEY_NAME);
  if (readKey(path) === undefined) await addPrivateFile(path, JSON.stringify(await makeKey()));
  const jwk = readKey(path);
  if (jwk?.kid === undefined)
    throw new DataFolderRefused(`DATA_DIR: ${SIGNING_KEY_NAME} holds no key`);
  const { d: _, ...publicJwk } = jwk;
  const key = (await importJWK(jwk, LOCAL_KEY_ALGORITHM)) as CryptoKey;
  const signer: Signer = { algorithm: LOCAL_KEY_ALGORITHM, key, keyId: jwk.kid };
  return { signer, publicJwk };
};

/** A shared secret as a key: imported once, because raw bytes cost more on every use. */
export const importSecret = (secret: string): Promise<CryptoKey> => {
  const bytes = new TextEncoder().encode(secret);
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  return crypto.subtle.importKey('raw', bytes, algorithm, false, ['sign', 'verify']);
};

type TokenClaims = {
  merchantId: string;
  /** The person; left out: the merchant is the actor, and no person. */
  subject?: string | undefined;
  merchantClaim: string;
  ttlSeconds: number;
  /** Absent: all rights of the merchant. */
  scope?: string | undefined;
  issuer?: string | undefined;
  audience?: string | undefined;
};

export const signToken = (signer: Signer, claims: TokenClaims): Promise<string> => {
  const { merchantId, merchantClaim, subject, ttlSeconds, scope, issuer, audience } = claims;
  const nowSeconds = Math.floor(Date.now() / 1000);
  const { algorithm: alg, keyId: kid, key } = signer;
  return new SignJWT({
    ...(subject !== undefined && { sub: subject }),
    [merchantClaim]: merchantId,
    iat: nowSeconds,
    exp: nowSeconds + ttlSeconds,
    ...(scope !== undefined && { scope }),
    ...(issuer !== undefined && { iss: issuer }),
    ...(audience !== undefined && { aud: audience }),
  })
    .setProtectedHeader({ alg, typ: 'JWT', ...(kid !== undefined && { kid }) })
    .sign(key);
};
