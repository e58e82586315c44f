/** A master key (KEK) wraps the keys of boxes in their rows, so that a copy of the key store alone opens none. */
import { createSecretKey, hkdfSync, type KeyObject } from 'node:crypto';
import { orElse } from '../shared/runtime/error-text.ts';
import { decrypt, encrypt, KEY_BYTES, newKeyBytes } from './box.ts';
import type { FoundKey } from './port.ts';

/** One of a service that keeps master keys would be another. `id` is in each row that it wraps. */
type MasterKey = {
  id: string;
  wrap(bytes: Buffer, keyId: string): Buffer;
  /** Throws Error for bytes that this key did not wrap under `keyId`. */
  unwrap(wrapped: Uint8Array, keyId: string): KeyObject;
};

/** The first one wraps; those before it are read until a rotation has ended. */
export type MasterKeys = readonly [current: MasterKey, ...previous: MasterKey[]];

const ID_BYTES = 12;

const masterKeyOf = (secret: string): MasterKey => {
  const info = 'payments/personal-kek/1';
  const derived = Buffer.from(hkdfSync('sha256', secret, '', info, KEY_BYTES + ID_BYTES));
  const kek = createSecretKey(derived.subarray(0, KEY_BYTES));
  const aadOf = (keyId: string): string => `personal-kek/1:${keyId}`;
  return {
    id: derived.toString('base64url', KEY_BYTES),
    wrap: (bytes, keyId) => encrypt(kek, aadOf(keyId), bytes),
    unwrap: (wrapped, keyId) => createSecretKey(decrypt(kek, aadOf(keyId), wrapped)),
  };
};

export const masterKeysOf = (kek: string, previousKek: string | undefined): MasterKeys => [
  masterKeyOf(kek),
  ...(previousKek === undefined ? [] : [masterKeyOf(previousKek)]),
];

/** `wrapped` null: erased. */
export type KeyRow = { id: string; kek: string; wrapped: Uint8Array | null };

export const newRow = ([current]: MasterKeys) => {
  const { id, bytes } = newKeyBytes();
  return { id, bytes, kek: current.id, wrapped: current.wrap(bytes, id) };
};

export const foundKeyOf = (masterKeys: MasterKeys, row: KeyRow | undefined): FoundKey => {
  if (row === undefined) return 'missing';
  const { id, kek, wrapped } = row;
  if (wrapped === null) return 'erased';
  const masterKey = masterKeys.find((one) => one.id === kek);
  return orElse('unreadable', () => masterKey?.unwrap(wrapped, id)) ?? 'unreadable';
};

/** A server that finds no index for a filter reads the whole collection for each row. */
export const REWRAP_ROWS = 50;

/** Of a page in the order of ids: the rows that an earlier master key wraps, wrapped by the current one. */
export const rewrapRows = (masterKeys: MasterKeys, page: readonly KeyRow[]) => {
  const [{ id: kek, wrap }] = masterKeys;
  const earlier = page.filter((row) => row.wrapped !== null && row.kek !== kek);
  const rows = earlier.flatMap((row) => {
    const key = foundKeyOf(masterKeys, row);
    if (typeof key === 'string') return [];
    return [{ id: row.id, kek, wrapped: wrap(key.export(), row.id) }];
  });
  const last = page.length < REWRAP_ROWS ? undefined : page.at(-1)?.id;
  return { rows, done: { last, rewrapped: rows.length, unreadable: earlier.length - rows.length } };
};
