/** Whether the indexes lead to every row: a damaged one leaves payments out silently (ADR-0121). */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { PAYMENT_INDEXES, type PaymentIndex } from './schema.ts';

/** Of the rows behind one rowid, up to another: how many an index has to lead to, and does. */
const rowsSql = ({ name, columns, of = 'TRUE' }: PaymentIndex): string => {
  const same = ['rowid', ...columns].map((column) => `entry.${column} = payment.${column}`);
  return `SELECT count(*) AS rows, ifnull(sum(EXISTS (
      SELECT 1 FROM payment AS entry INDEXED BY ${name} WHERE ${of} AND ${same.join(' AND ')}
    )), 0) AS found FROM payment NOT INDEXED WHERE rowid > ? AND rowid <= ? AND ${of}`;
};

const entriesSql = ({ name, of = 'TRUE' }: PaymentIndex): string =>
  `SELECT count(*) AS entries FROM payment INDEXED BY ${name} WHERE ${of}`;

export type IndexCounts = { index: string; rows: number; found: number };

/** For a file that has all its indexes. Each call throws SQLite's errors. */
export const prepareIndexChecks = (db: DatabaseSync) => {
  const rows: [string, StatementSync][] = PAYMENT_INDEXES.map((index) => [
    index.name,
    db.prepare(rowsSql(index)),
  ]);
  return {
    counts: (after: number, upTo: number): IndexCounts[] =>
      rows.map(([index, statement]) => {
        const counted = statement.get(after, upTo);
        return { index, rows: Number(counted?.rows), found: Number(counted?.found) };
      }),
    entries: (): number[] =>
      PAYMENT_INDEXES.map((index) => Number(db.prepare(entriesSql(index)).get()?.entries)),
  };
};
export type IndexChecks = ReturnType<typeof prepareIndexChecks>;
