/**
 * Whether the indexes of the payments lead to every row. Lists and searches find payments by an index
 * alone, so one that is damaged leaves payments out, and no error says so (ADR-0121).
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { PAYMENT_INDEXES, type PaymentIndex } from './schema.ts';

/** Of the rows behind one rowid, up to another one: how many an index has to lead to, and does. */
const rowsSql = ({ name, columns, of = 'TRUE' }: PaymentIndex): string => {
  const same = ['rowid', ...columns].map((column) => `entry.${column} = payment.${column}`);
  return `SELECT count(*) AS rows, ifnull(sum(EXISTS (
      SELECT 1 FROM payment AS entry INDEXED BY ${name} WHERE ${of} AND ${same.join(' AND ')}
    )), 0) AS found FROM payment NOT INDEXED WHERE rowid > ? AND rowid <= ? AND ${of}`;
};

const entriesSql = ({ name, of = 'TRUE' }: PaymentIndex): string =>
  `SELECT count(*) AS entries FROM payment INDEXED BY ${name} WHERE ${of}`;

/** What was counted of one index. */
export type IndexCounts = { index: string; rows: number; found: number };

export type IndexChecks = {
  /** Counts the rows of each index between two rowids. Throws SQLite's errors. */
  counts(after: number, upTo: number): IndexCounts[];
  /** How many entries each index has in all, in the same order. Throws SQLite's errors. */
  entries(): number[];
};

/** Prepares the checks of a file that has all its indexes. */
export const prepareIndexChecks = (db: DatabaseSync): IndexChecks => {
  const rows: [string, StatementSync][] = PAYMENT_INDEXES.map((index) => [
    index.name,
    db.prepare(rowsSql(index)),
  ]);
  return {
    counts: (after, upTo) =>
      rows.map(([index, statement]) => {
        const counted = statement.get(after, upTo);
        return { index, rows: Number(counted?.rows), found: Number(counted?.found) };
      }),
    entries: () =>
      PAYMENT_INDEXES.map((index) => Number(db.prepare(entriesSql(index)).get()?.entries)),
  };
};
