/** What is read from the files that settings name. No function throws: a file that cannot be read is a problem. */
import { join, resolve } from 'node:path';
import type { MerchantAccount, TokenKeys } from '../config.ts';
import { readMerchantAccounts } from './merchant-accounts.ts';
import { type MerchantSettings, readJsonFile, readMerchants, readText } from './merchants.ts';
import { providerKindOf } from './problems.ts';
import type { ParsedSettings } from './table.ts';

/** Relative settings are resolved from here. */
export const PROJECT_DIR = join(import.meta.dirname, '../../..');

/** Absolute. */
export const dataDirOf = (parsed: ParsedSettings): string =>
  resolve(PROJECT_DIR, parsed.DATA_DIR ?? './data');

const isPublicKey = (key: unknown): key is Record<string, unknown> =>
  typeof key === 'object' && key !== null && 'kty' in key && !('d' in key) && !('k' in key);

const readKeys = (path: string): { keys: TokenKeys } | { problem: string } => {
  const read = readJsonFile(path);
  if ('problem' in read) return { problem: `JWT_JWKS_FILE ${read.problem}` };
  const keys = (read.value as { keys?: unknown } | null)?.keys;
  if (!Array.isArray(keys) || keys.length === 0 || !keys.every(isPublicKey)) {
    return { problem: 'JWT_JWKS_FILE must name a JWK set of public keys' };
  }
  return { keys: { kind: 'jwks-file', path, jwks: { keys } } };
};

/** The source of the keys that verify tokens. */
export const keysOf = (parsed: ParsedSettings): { keys: TokenKeys } | { problem: string } => {
  if (parsed.JWT_SECRET !== undefined) {
    return { keys: { kind: 'secret', secret: parsed.JWT_SECRET } };
  }
  if (parsed.JWT_JWKS_URL !== undefined) {
    return { keys: { kind: 'jwks-url', url: parsed.JWT_JWKS_URL } };
  }
  if (parsed.JWT_JWKS_FILE === undefined) {
    return { keys: { kind: 'local', folder: dataDirOf(parsed) } };
  }
  return readKeys(resolve(PROJECT_DIR, parsed.JWT_JWKS_FILE));
};

type Merchants = ReadonlyMap<string, MerchantSettings>;

export const merchantsOf = (
  parsed: ParsedSettings,
): { merchants: Merchants; problems: string[] } => {
  if (parsed.MERCHANTS_FILE === undefined) return { merchants: new Map(), problems: [] };
  const { merchants, problems } = readMerchants(resolve(PROJECT_DIR, parsed.MERCHANTS_FILE));
  return { merchants, problems: problems.map((line) => `MERCHANTS_FILE ${line}`) };
};

/** Read by a process that talks to Stripe alone: no other one needs the keys. */
export const accountsOf = (parsed: ParsedSettings, merchants: Merchants) => {
  const { STRIPE_SECRET_KEY: key } = parsed;
  const isStripe = providerKindOf(parsed) === 'stripe' && key !== undefined;
  if (!isStripe) return { accounts: new Map<string, MerchantAccount>(), problems: [] };
  const { accounts, problems } = readMerchantAccounts(merchants, key, PROJECT_DIR);
  return { accounts, problems: problems.map((line) => `MERCHANTS_FILE ${line}`) };
};

export const kafkaCaOf = (
  parsed: ParsedSettings,
): { kafkaCa: string | undefined; problems: string[] } => {
  if (parsed.KAFKA_CA_FILE === undefined) return { kafkaCa: undefined, problems: [] };
  const read = readText(resolve(PROJECT_DIR, parsed.KAFKA_CA_FILE));
  if ('problem' in read) return { kafkaCa: undefined, problems: [`KAFKA_CA_FILE ${read.problem}`] };
  const isPem = read.text.includes('-----BEGIN CERTIFICATE-----');
  return {
    kafkaCa: read.text,
    problems: isPem ? [] : ['KAFKA_CA_FILE must name a file with certificates in PEM'],
  };
};

/** Absolute; undefined: in the data folder. */
export const sealingKeyFileOf = ({ SEALING_KEY_FILE: file }: ParsedSettings): string | undefined =>
  file === undefined ? undefined : resolve(PROJECT_DIR, file);
