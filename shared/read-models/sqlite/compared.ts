/**
 * Compares the served file, in another thread, with the log and its own indexes. Lists and searches find
 * payments by an index alone, so a damaged one leaves payments out, and no error says so (ADR-0121).
 */
import type { DatabaseSync } from 'node:sqlite';
import { setImmediate as immediate } from 'node:timers/promises';
import type { ComparedReadModels, ReadModelsFile } from '../port.ts';
import { createUncachedReads } from './reader.ts';
import { connectToRead, PAYMENT_INDEXES, type PaymentIndex } from './schema.ts';

/** Of the rows behind one rowid, up to another: how many an index has to lead to, and does. */
const rowsSql = ({ name, columns, of = 'TRUE' }: PaymentIndex): string => {
  const same = ['rowid', ...columns].map((column) => `entry.${column} = payment.${column}`);
  return `SELECT count(*) AS rows, ifnull(sum(EXISTS (
      SELECT 1 FROM payment AS entry INDEXED BY ${name} WHERE ${of} AND ${same.join(' AND ')}
    )), 0) AS found FROM payment NOT INDEXED WHERE rowid > ? AND rowid <= ? AND ${of}`;
};

const PAGE = 500;

const END_OF_PAGE = `SELECT max(rowid) AS upTo FROM (
  SELECT rowid FROM payment NOT INDEXED WHERE rowid > ? ORDER BY rowid LIMIT ${PAGE})`;

/** Of a page of the ids' index: the last one, and how many lead to no row. */
const LOST_ROWS = `SELECT max(payment_id) AS upTo, sum(
    NOT EXISTS (SELECT 1 FROM payment AS there NOT INDEXED WHERE there.rowid = listed.id)
  ) AS lost FROM (
    SELECT rowid AS id, payment_id FROM payment INDEXED BY ${PAYMENT_INDEXES[0].name}
    WHERE payment_id > ? ORDER BY payment_id LIMIT ${PAGE}) AS listed`;

/** A statement sees one state, so no write looks like damage. In pages: nothing stops SQLite's own check. */
const indexDamage = async (db: DatabaseSync, signal: AbortSignal): Promise<string | undefined> => {
  const pages = PAYMENT_INDEXES.map((index) => [index.name, db.prepare(rowsSql(index))] as const);
  const endOfPage = db.prepare(END_OF_PAGE);
  for (let after = Number.MIN_SAFE_INTEGER; !signal.aborted; await immediate()) {
    const upTo = endOfPage.get(after)?.upTo;
    if (typeof upTo !== 'number') break;
    // Of two pages of the file in each other's place: the next page would begin again.
    if (upTo <= after) return `document ${upTo} is stored after document ${after}`;
    for (const [name, page] of pages) {
      const { rows, found } = page.get(after, upTo) ?? {};
      if (rows !== found) return `index ${name} leads to ${found} of ${rows} documents in a row`;
    }
    after = upTo;
  }
  const lostRows = db.prepare(LOST_ROWS);
  for (let after = ''; !signal.aborted; await immediate()) {
    const { upTo, lost } = lostRows.get(after) ?? {};
    if (typeof upTo !== 'string') break;
    if (lost !== 0) return `${lost} documents of an index are not there`;
    after = upTo;
  }
  return undefined;
};

export const openCompared = (
  file: ReadModelsFile,
): ComparedReadModels & { close(): Promise<void> } => {
  const at = connectToRead(file);
  return {
    ...createUncachedReads((step) => step(at)),
    indexDamage: (signal) => indexDamage(at.db, signal),
    close: async () => at.db.close(),
  };
};
