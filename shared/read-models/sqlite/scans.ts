/**
 * The jobs of the threads beside a read models' file (replaceable-file.ts), each over a connection of its own:
 * the search, the checksum, the comparison of the indexes, and the checkpoint of the write-ahead log.
 * Each throws SQLite's errors.
 */
import { setImmediate as immediate } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { Scan } from '../../runtime/scan.ts';
import { movePages, openReadModelsToRead, openReadModelsWal } from '../../runtime/sqlite.ts';
import { contentOfColumns, createRowCheck, startChecksum } from '../document-row.ts';
import type { PaymentSearch, PaymentSearchPage, ReadModelsChecksum } from '../port.ts';
import { prepareIndexChecks, ROW } from './schema.ts';
import { type SearchBounds, type SearchConnection, searchSqlite } from './search.ts';

type File = { file: string };

export type SearchArgs = File & {
  secrets: readonly [string, ...string[]];
  search: PaymentSearch;
  limit: number;
  bounds: SearchBounds | undefined;
};

/** Open as long as its thread, which searches one file. */
let searched: SearchConnection | undefined;

export const search: Scan<SearchArgs, never, PaymentSearchPage> = async (args) => {
  searched ??= { db: openReadModelsToRead(args.file), rowCheck: createRowCheck(args.secrets) };
  return searchSqlite(searched, args.search, args.limit, args.bounds);
};

export const checksum: Scan<File, never, ReadModelsChecksum> = async ({ file }) => {
  using db = openReadModelsToRead(file);
  const sum = startChecksum();
  // One statement: what is written meanwhile is not read.
  const rows = db.prepare(`SELECT ${ROW} FROM payment`);
  rows.setReturnArrays(true);
  // No event is applied meanwhile: objects would take half as long again.
  for (const row of rows.iterate() as unknown as Iterable<unknown[]>) {
    const [_rowCheck, body] = row.splice(-2) as [string, string];
    sum.addContent(contentOfColumns(row, body));
  }
  return sum.result();
};

const PAGE = 1000;

const END_OF_PAGE = `SELECT max(rowid) AS upTo FROM (
  SELECT rowid FROM payment NOT INDEXED WHERE rowid > ? ORDER BY rowid LIMIT ${PAGE})`;

/**
 * The first index that differs from its table, in words; undefined where none does. Page by page, unlike
 * SQLite's own check, which nothing can stop.
 */
export const indexDamage: Scan<File, never, string | undefined> = async ({ file }, { signal }) => {
  using db = openReadModelsToRead(file);
  // The snapshot begins here: later writes are not read.
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
  const damaged = total.findIndex(({ rows, found }, at) => found !== rows || entries[at] !== rows);
  const { index, rows, found } = total[damaged] ?? {};
  if (index === undefined) return undefined;
  return `index ${index} has ${entries[damaged]} entries, and leads to ${found} of ${rows} documents`;
};

/** One checkpoint of the file; the next one moves what this one left. */
export const moveLog: Scan<File, never, void> = async ({ file }) => {
  // A file that is gone is not made again.
  using db = openReadModelsWal(`${pathToFileURL(file).href}?mode=rw`);
  movePages(db);
};
