/**
 * Compares each index of the read models' file with its table, in a thread (search-thread.ts): page by
 * page, unlike SQLite's own check, which nothing can stop.
 */
import { setImmediate as immediate } from 'node:timers/promises';
import type { Scan } from '../../runtime/scan.ts';
import { prepareIndexChecks } from './index-check.ts';
import { openForReading } from './search-scan.ts';

/** The address of this module, for who orders the scan. */
export const INDEX_SCAN = import.meta.url;

const PAGE = 1000;

const END_OF_PAGE = `SELECT max(rowid) AS upTo FROM (
  SELECT rowid FROM payment NOT INDEXED WHERE rowid > ? ORDER BY rowid LIMIT ${PAGE})`;

/** The first index that differs, in words; undefined where none does. Throws SQLite's errors. */
export const scan: Scan<{ file: string }, never, string | undefined> = async (
  { file },
  { signal },
) => {
  const db = openForReading(file);
  try {
    // What is written from here on is not read.
    db.exec('BEGIN');
    const checks = prepareIndexChecks(db);
    const endOfPage = db.prepare(END_OF_PAGE);
    const total = checks.counts(0, 0);
    for (let after = Number.MIN_SAFE_INTEGER; !signal.aborted; await immediate()) {
      const upTo = endOfPage.get(after)?.upTo as number | null | undefined;
      if (typeof upTo !== 'number') break;
      // Of two pages of the file in each other's place: the next page would begin again.
      if (upTo <= after) return `document ${upTo} is stored after document ${after}`;
      for (const [at, { rows, found }] of checks.counts(after, upTo).entries()) {
        const sum = total[at];
        if (sum !== undefined)
          total[at] = { ...sum, rows: sum.rows + rows, found: sum.found + found };
      }
      after = upTo;
    }
    if (signal.aborted) return undefined;
    const entries = checks.entries();
    const damaged = total.findIndex(
      ({ rows, found }, at) => found !== rows || entries[at] !== rows,
    );
    const { index, rows, found } = total[damaged] ?? {};
    if (index === undefined) return undefined;
    return `index ${index} has ${entries[damaged]} entries, and leads to ${found} of ${rows} documents`;
  } finally {
    db.close();
  }
};
