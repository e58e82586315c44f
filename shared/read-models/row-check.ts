/**
 * The keyed check of each stored document (ADR-0121): who can write the read models' store, and has
 * not the installation's secret, can make no document that is served.
 */
import { hash, hkdfSync } from 'node:crypto';
import { contentOf, type DocumentRow } from './document-row.ts';

/** Keeps these keys apart from every other one that is made from the same secret. */
const LABEL = 'payments: check of a read model, 2';
/** As base64url exactly one block of SHA-256. */
const KEY_BYTES = 48;

type Keys = { inner: string; outer: string };

/** Makes and verifies the checks of rows. */
export type RowCheck = {
  /** The check of a row under the current secret: 43 characters, base64url. */
  of(row: DocumentRow): string;
  /** True where the row is as this installation wrote it, under the current or an earlier secret. */
  holds(row: DocumentRow, check: unknown): boolean;
  /** The same for the content of a row. */
  holdsContent(content: string, check: unknown): boolean;
  /** Names the keys of each secret, the current one first; tells nothing about the secret. */
  keyIds: readonly string[];
};

const keysOf = (secret: string): Keys => {
  const bytes = Buffer.from(hkdfSync('sha256', secret, '', LABEL, 2 * KEY_BYTES));
  const textOf = (from: number) => bytes.toString('base64url', from, from + KEY_BYTES);
  return { inner: textOf(0), outer: textOf(KEY_BYTES) };
};

/**
 * Two digests, one in the other, under a key each as in HMAC: without the outer one, who knows a check
 * could go on from it. They are over texts and in one call each, since an HMAC object of Node's costs a
 * GET from the file 8 µs more.
 */
const macOf = ({ inner, outer }: Keys, text: string): string =>
  hash('sha256', outer + hash('sha256', inner + text, 'base64url'), 'base64url');

/**
 * The checks under the idempotency secret, and the earlier one during a rotation: the first of
 * `secrets` is the current one (settings, `IDEMPOTENCY_SECRET`).
 */
export const createRowCheck = (secrets: readonly [string, ...string[]]): RowCheck => {
  const [current, ...earlier] = secrets;
  const keys = keysOf(current);
  const earlierKeys = earlier.map(keysOf);
  const holdsContent = (content: string, check: unknown): boolean =>
    macOf(keys, content) === check || earlierKeys.some((one) => macOf(one, content) === check);
  return {
    of: (row) => macOf(keys, contentOf(row)),
    holds: (row, check) => holdsContent(contentOf(row), check),
    holdsContent,
    keyIds: [keys, ...earlierKeys].map((one) => macOf(one, 'key')),
  };
};
