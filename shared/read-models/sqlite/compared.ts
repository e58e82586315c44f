/**
 * The served file in another thread, to be compared with the log and with its own indexes. Lists and
 * searches find payments by an index alone, so a damaged one leaves payments out, and no error says so
 * (ADR-0121).
 */
import type { DatabaseSync } from 'node:sqlite';
import { setImmediate as immediate } from 'node:timers/promises';
import type { OpenCompared } from '../port.ts';
import { connectToRead, type SqliteReadModelsOptions } from './connection.ts';
import { createUncachedReads } from './reader.ts';
import { PAYMENT_INDEXES, type PaymentIndex } from './schema.ts';

/** Of the rows behind one rowid, up to another: how many an index has to lead to, and does. */
const rowsSql = ({ name, columns, of = 'TRUE' }: PaymentIndex): string => {
  const same = ['rowid', ...columns].map((column) => `entry.${column} = payment.${column}`);
  return `SELECT count(*) AS rows, ifnull(sum(EXISTS (
      SELECT 1 FROM payment AS entry INDEXED BY ${name} WHERE ${of} AND ${same.join(' AND ')}
    )), 0) AS found FROM payment NOT INDEXED WHERE rowid > ? AND rowid <= ? AND ${of}`;
};

/** In one statement, so that both see the same rows. */
const ENTRIES = `SELECT (SELECT count(*) FROM payment NOT INDEXED) AS rows,
  (SELECT count(*) FROM payment INDEXED BY payment_merchant) AS entries`;

const PAGE = 1000;

const END_OF_PAGE = `SELECT max(rowid) AS upTo FROM (
  SELECT rowid FROM payment NOT INDEXED WHERE rowid > ? ORDER BY rowid LIMIT ${PAGE})`;

/** Page by page, unlike SQLite's own check, which nothing can stop. */
const indexDamage = async (db: DatabaseSync, signal: AbortSignal): Promise<string | undefined> => {
  const checks = PAYMENT_INDEXES.map((index) => ({
    ...{ name: index.name, rows: 0, found: 0 },
    inPage: db.prepare(rowsSql(index)),
  }));
  const endOfPage = db.prepare(END_OF_PAGE);
  for (let after = Number.MIN_SAFE_INTEGER; ; await immediate()) {
    if (signal.aborted) return undefined;
    const upTo = endOfPage.get(after)?.upTo;
    if (typeof upTo !== 'number') break;
    // Of two pages of the file in each other's place: the next page would begin again.
    if (upTo <= after) return `document ${upTo} is stored after document ${after}`;
    for (const check of checks) {
      const counted = check.inPage.get(after, upTo);
      check.rows += Number(counted?.rows);
      check.found += Number(counted?.found);
    }
    after = upTo;
  }
  const damaged = checks.find(({ rows, found }) => found !== rows);
  if (damaged !== undefined)
    return `index ${damaged.name} leads to ${damaged.found} of ${damaged.rows} documents`;
  const { rows, entries } = db.prepare(ENTRIES).get() ?? {};
  return rows === entries ? undefined : `${entries} documents are listed, and ${rows} are there`;
};

/** Throws SQLite's errors, as each call does. */
export const openCompared: OpenCompared = (args) => {
  const at = connectToRead(args as Pick<SqliteReadModelsOptions, 'file' | 'secrets'>);
  return {
    ...createUncachedReads((step) => step(at)),
    indexDamage: (signal) => indexDamage(at.db, signal),
    close: async () => at.db.close(),
  };
};
