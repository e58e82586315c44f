/** The search over the read models' SQLite file: every text is a parameter, never a part of the SQL. */
import type { DatabaseSync } from 'node:sqlite';
import { documentsOf, type Found, newestOf } from '../found.ts';
import type { PaymentDocument, PaymentSearch } from '../port.ts';
import { type CheckedRow, type Connection, ROW } from './connection.ts';

type SearchedFile = Pick<Connection, 'db' | 'rowCheck'>;

type Condition = [sql: string, ...values: (string | number)[]];

const given = <T>(value: T | undefined, condition: (value: T) => Condition): Condition[] =>
  value === undefined ? [] : [condition(value)];

const conditionsOf = (search: PaymentSearch): Condition[] => [
  ...given(search.merchantReference, (reference) => ['merchant_reference = ?', reference]),
  ...given(search.status, (status) => ['status = ?', status]),
  ...given(search.from, (from) => ['created_at >= ?', from]),
  ...given(search.to, (to) => ['created_at < ?', to]),
  ...given(search.minAmount, (amount) => ['amount >= ?', amount]),
  ...given(search.maxAmount, (amount) => ['amount <= ?', amount]),
  ...given(search.after, ({ createdAt, paymentId }) => [
    '(created_at, payment_id) < (?, ?)',
    createdAt,
    paymentId,
  ]),
];

const foundOf = ({ rowCheck }: SearchedFile, row: CheckedRow & { parked: number }): Found => {
  const { paymentId, merchantId, revision, body, createdAt } = row;
  const found = { paymentId, merchantId, revision, body, createdAt, parked: row.parked === 1 };
  return rowCheck.holds(row, row.rowCheck) ? found : { ...found, damaged: true };
};

const find = (file: SearchedFile, conditions: Condition[], limit: number): Found[] => {
  const where = conditions.map(([sql]) => sql).join(' AND ') || 'TRUE';
  const values = conditions.flatMap(([, ...rest]) => rest);
  const rows = file.db
    .prepare(
      `SELECT ${ROW},
         EXISTS (SELECT 1 FROM parked WHERE parked.payment_id = payment.payment_id) AS parked
       FROM payment WHERE ${where} ORDER BY created_at DESC, payment_id DESC LIMIT ?`,
    )
    .all(...values, limit);
  return rows.map((row) => foundOf(file, row as unknown as CheckedRow & { parked: number }));
};

/** One step in the index for each merchant that has a payment. */
const MERCHANTS = `
  WITH RECURSIVE merchant (id) AS (
    SELECT min(merchant_id) FROM payment
    UNION ALL
    SELECT (SELECT min(merchant_id) FROM payment WHERE merchant_id > id)
    FROM merchant WHERE id IS NOT NULL
  )
  SELECT id FROM merchant WHERE id IS NOT NULL`;

const merchantsOf = (db: DatabaseSync): string[] =>
  db
    .prepare(MERCHANTS)
    .all()
    .map(({ id }) => id as string);

/**
 * The parts of a search, each of which has an index, as an OR over them would not: the three meanings
 * of a text, and the payments of all merchants one merchant after the other. Time has no index: each
 * new payment would pay for it, and only an auditor's search would use it.
 */
const partsOf = (db: DatabaseSync, search: PaymentSearch): Condition[][] => {
  const { text, merchantId, merchantReference } = search;
  const inTime = (...more: Condition[]): Condition[][] =>
    (merchantId === undefined ? merchantsOf(db) : [merchantId]).map((id) => [
      ['merchant_id = ?', id],
      ...more,
    ]);
  // The plus keeps SQLite from using the merchant's index where there is a better one.
  const ofMerchant = given(merchantId, (id) => ['+merchant_id = ?', id]);
  if (text === undefined) return merchantReference === undefined ? inTime() : [ofMerchant];
  return [
    [['payment_id = ?', text], ...ofMerchant],
    [['merchant_reference = ?', text], ...ofMerchant],
    ...inTime(['last4 = ?', text]),
  ];
};

/** The documents that meet the search; see ReadModelsReader. Throws SQLite's errors. */
export const searchSqlite = (
  file: SearchedFile,
  search: PaymentSearch,
  limit: number,
): PaymentDocument[] => {
  const conditions = conditionsOf(search);
  let found: Found[] = [];
  for (const part of partsOf(file.db, search)) {
    // Of the next merchant only what is as new as the oldest document found so far.
    const oldest = found.length < limit ? undefined : found.at(-1)?.createdAt;
    const newer = given(oldest, (time): Condition => ['created_at >= ?', time]);
    found = newestOf([...found, ...find(file, [...part, ...conditions, ...newer], limit)], limit);
  }
  return documentsOf(found);
};
