/**
 * The keyed check of each stored document (ADR-0121): who can write the read models' store, and has
 * not the installation's secret, can make no document that is served.
 */
import { createHmac, createSecretKey, hkdfSync, type KeyObject } from 'node:crypto';
import { contentOf, type DocumentRow } from './document-row.ts';

/** Keeps this key apart from every other one that is made from the same secret. */
const LABEL = 'payments: check of a read model, 3';
const KEY_BYTES = 32;

/** Makes and verifies the checks of rows. */
export type RowCheck = {
  /** The check of a row under the current secret: 43 characters, base64url. */
  of(row: DocumentRow): string;
  /** True where the row is as this installation wrote it, under the current or an earlier secret. */
  holds(row: DocumentRow, check: unknown): boolean;
  /** Names the key of each secret, the current one first; tells nothing about the secret. */
  keyIds: readonly string[];
};

const keyOf = (secret: string): KeyObject =>
  createSecretKey(Buffer.from(hkdfSync('sha256', secret, '', LABEL, KEY_BYTES)));

const macOf = (key: KeyObject, text: string): string =>
  createHmac('sha256', key).update(text).digest('base64url');

/**
 * The checks under the idempotency secret, and the earlier one during a rotation: the first of
 * `secrets` is the current one (settings, `IDEMPOTENCY_SECRET`).
 */
export const createRowCheck = (secrets: readonly [string, ...string[]]): RowCheck => {
  const [current, ...earlier] = secrets;
  const key = keyOf(current);
  const earlierKeys = earlier.map(keyOf);
  return {
    of: (row) => macOf(key, contentOf(row)),
    holds: (row, check) => {
      const content = contentOf(row);
      return [key, ...earlierKeys].some((one) => macOf(one, content) === check);
    },
    keyIds: [key, ...earlierKeys].map((one) => macOf(one, 'key')),
  };
};
