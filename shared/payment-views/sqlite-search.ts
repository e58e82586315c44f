/** The search over the read models' SQLite file: every text is a parameter, never a part of the SQL. */
import type { DatabaseSync } from 'node:sqlite';
import { intact, type SummedRow } from './document-sum.ts';
import { type Found, newestOf } from './found.ts';
import type { PaymentDocument, PaymentSearch } from './port.ts';

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

const find = (db: DatabaseSync, conditions: Condition[], limit: number): Found[] => {
  const where = conditions.map(([sql]) => sql).join(' AND ') || 'TRUE';
  const values = conditions.flatMap(([, ...rest]) => rest);
  const rows = db
    .prepare(
      `SELECT payment_id AS paymentId, merchant_id AS merchantId, revision, open, sum, body,
         created_at AS createdAt,
         EXISTS (SELECT 1 FROM parked WHERE parked.payment_id = payment.payment_id) AS parked
       FROM payment WHERE ${where} ORDER BY created_at DESC, payment_id DESC LIMIT ?`,
    )
    .all(...values, limit);
  return rows.map((row) => {
    const { open: _, sum: __, ...found } = row as unknown as Found & SummedRow;
    intact(found.paymentId, row as unknown as SummedRow);
    return { ...found, parked: row.parked === 1 };
  });
};

/**
 * The documents that meet the search; see PaymentViewsReader. Throws DamagedDocument, and SQLite's
 * own errors.
 */
export const searchSqlite = (
  db: DatabaseSync,
  search: PaymentSearch,
  limit: number,
): PaymentDocument[] => {
  const { text } = search;
  const conditions = conditionsOf(search);
  // One query for each of the three meanings: each has an index of its own, an OR has none.
  // A plus keeps the merchant's index out where there is a better one.
  const own = (column: string) =>
    given(search.merchantId, (id): Condition => [`${column} = ?`, id]);
  const indexed = search.merchantReference === undefined ? 'merchant_id' : '+merchant_id';
  const meanings: Condition[][] =
    text === undefined
      ? [own(indexed)]
      : [
          [['payment_id = ?', text], ...own('+merchant_id')],
          [['merchant_reference = ?', text], ...own('+merchant_id')],
          [['last4 = ?', text], ...own('merchant_id')],
        ];
  const found = meanings.flatMap((meaning) => find(db, [...meaning, ...conditions], limit));
  return newestOf(found, limit);
};
