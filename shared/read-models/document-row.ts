/** A payment's row in both stores, with a keyed check: none made without the secret is served (ADR-0121). */
import {
  createHmac,
  createSecretKey,
  hash as digestOf,
  hkdfSync,
  type KeyObject,
} from 'node:crypto';
import { keptBodyOf } from '../payment/response.ts';
import type { PaymentReadModel } from '../payment/state.ts';

/** Without its check. Times are RFC 3339, the amount minor units. */
export type DocumentRow = {
  paymentId: string;
  merchantId: string;
  revision: number;
  status: string;
  createdAt: string;
  amount: number;
  last4: string;
  merchantReference: string | null;
  /** The time of the oldest unresolved intent. */
  unresolvedSince: string | null;
  unresolved: string | null;
  body: string;
};

export const rowOf = (readModel: PaymentReadModel): DocumentRow => {
  const { paymentId, merchantId, revision, createdAt, status, amount, unresolved } = readModel;
  const { merchantReference, paymentMethod } = readModel;
  const first = unresolved[0];
  return {
    paymentId,
    merchantId,
    revision,
    status,
    createdAt,
    amount,
    last4: paymentMethod.card.last4,
    // A lone surrogate cannot be stored as UTF-8, and would come back as another character.
    merchantReference: merchantReference?.toWellFormed() ?? null,
    unresolvedSince: first?.since ?? null,
    unresolved: first === undefined ? null : JSON.stringify(unresolved),
    body: keptBodyOf(readModel),
  };
};

export const readModelOf = (
  row: Pick<DocumentRow, 'merchantId' | 'revision' | 'unresolved' | 'body'>,
): PaymentReadModel => ({
  ...JSON.parse(row.body),
  merchantId: row.merchantId,
  revision: row.revision,
  unresolved: row.unresolved === null ? [] : JSON.parse(row.unresolved),
});

/** In the order of DocumentRow, without the body. */
export const columnsOf = (row: DocumentRow) => {
  const { paymentId, merchantId, revision, status, createdAt, amount, last4 } = row;
  const { merchantReference, unresolvedSince, unresolved } = row;
  const first = [paymentId, merchantId, revision, status, createdAt, amount, last4];
  return [...first, merchantReference, unresolvedSince, unresolved];
};

/** The array ends at its bracket, so that the body need not be escaped a second time. */
export const contentOfColumns = (columns: readonly unknown[], body: string): string =>
  JSON.stringify(columns) + body;

/** Two rows have the same text only when they are the same. */
export const contentOf = (row: DocumentRow): string => contentOfColumns(columnsOf(row), row.body);

const HASH_BYTES = 32;

/** Over rows in any order, since the stores keep no common one: their hashes are combined with XOR. */
export const startChecksum = () => {
  const combined = new Uint8Array(HASH_BYTES);
  let documents = 0;
  const addContent = (content: string): void => {
    const hash = digestOf('sha256', content, 'buffer');
    for (let at = 0; at < HASH_BYTES; at += 1) combined[at] = (combined[at] ?? 0) ^ (hash[at] ?? 0);
    documents += 1;
  };
  return {
    add: (row: DocumentRow): void => addContent(contentOf(row)),
    addContent,
    result: () => ({ documents, hash: Buffer.from(combined).toString('hex') }),
  };
};

/** Keeps this key apart from every other one that is made from the same secret. */
const LABEL = 'payments: check of a read model, 3';
const KEY_BYTES = 32;

const keyOf = (secret: string): KeyObject =>
  createSecretKey(Buffer.from(hkdfSync('sha256', secret, '', LABEL, KEY_BYTES)));

const macOf = (key: KeyObject, text: string): string =>
  createHmac('sha256', key).update(text).digest('base64url');

/** Under `IDEMPOTENCY_SECRET`, which comes first, and the earlier one during a rotation. */
export const createRowCheck = ([current, ...earlier]: readonly [string, ...string[]]) => {
  const key = keyOf(current);
  const keys = [key, ...earlier.map(keyOf)];
  return {
    /** The check of a row under the current secret: 43 characters, base64url. */
    of: (row: DocumentRow): string => macOf(key, contentOf(row)),
    /** True where the row is as this installation wrote it, under the current or an earlier secret. */
    holds: (row: DocumentRow, check: unknown): boolean => {
      const content = contentOf(row);
      return keys.some((one) => macOf(one, content) === check);
    },
    /** Names the key of each secret, the current one first; tells nothing about the secret. */
    keyIds: keys.map((one) => macOf(one, 'key')),
  };
};
export type RowCheck = ReturnType<typeof createRowCheck>;
