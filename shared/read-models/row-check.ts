/** Without the installation's secret no writer can make a document that is served (ADR-0121). */
import { createHmac, createSecretKey, hkdfSync, type KeyObject } from 'node:crypto';
import { createBoundedMap } from '../runtime/bounded-map.ts';
import { contentOf, type DocumentRow } from './document-row.ts';

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

/** How many damaged documents are known by id; one beyond may be reported a second time. */
const REPORTED_MAX = 1_000;

/** Reports each document that does not have its check once, until it is written again. */
export const createDamageReports = () => {
  const reported = createBoundedMap<true>(REPORTED_MAX);
  const listeners: ((paymentId: string) => void)[] = [];
  return {
    onDamage: (listener: (paymentId: string) => void): void => void listeners.push(listener),
    report: (paymentId: string): void => {
      if (reported.get(paymentId)) return;
      reported.set(paymentId, true);
      for (const listener of listeners) listener(paymentId);
    },
    written: (paymentId: string): void => void reported.delete(paymentId),
  };
};
export type DamageReports = ReturnType<typeof createDamageReports>;
