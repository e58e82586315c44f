/** Jobs of the threads beside a read models' file (search-thread.ts), each with a connection. */
import { DatabaseSync } from 'node:sqlite';
import { setImmediate as immediate } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { Scan } from '../../runtime/scan.ts';
import { startChecksum } from '../checksum.ts';
import { contentOfColumns } from '../document-row.ts';
import type { PaymentSearch, PaymentSearchPage, ReadModelsChecksum } from '../port.ts';
import { createRowCheck } from '../row-check.ts';
import { COLUMNS, type ColumnList } from './columns.ts';
import { prepareIndexChecks } from './index-check.ts';
import { type SearchBounds, type SearchConnection, searchSqlite } from './search.ts';

type File = { file: string };

const WAIT_MS_MAX = 5000;

/** Throws SQLite's errors, as each job does. */
const openForReading = (file: string): DatabaseSync => {
  const db = new DatabaseSync(file, { readOnly: true, timeout: WAIT_MS_MAX });
  db.exec('PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA cache_size = -16384');
  return db;
};

export type SearchArgs = File & {
  secrets: readonly [string, ...string[]];
  search: PaymentSearch;
  limit: number;
  bounds: SearchBounds | undefined;
};

/** Open as long as its thread, which searches one file. */
let searched: SearchConnection | undefined;

export const search: Scan<SearchArgs, never, PaymentSearchPage> = async (args) => {
  searched ??= { db: openForReading(args.file), rowCheck: createRowCheck(args.secrets) };
  return searchSqlite(searched, args.search, args.limit, args.bounds);
};

type Row = [...columns: ColumnList, body: string];

export const checksum: Scan<File, never, ReadModelsChecksum> = async ({ file }) => {
  using db = openForReading(file);
  const rows = db.prepare(`SELECT ${COLUMNS}, body FROM payment`);
  rows.setReturnArrays(true);
  const sum = startChecksum();
  // One statement: what is written meanwhile is not read.
  for (const row of rows.iterate() as unknown as Iterable<Row>) {
    const body = row.pop() as string;
    sum.addContent(contentOfColumns(row, body));
  }
  return sum.result();
};

const PAGE = 1000;

const END_OF_PAGE = `SELECT max(rowid) AS upTo FROM (
  SELECT rowid FROM payment NOT INDEXED WHERE rowid > ? ORDER BY rowid LIMIT ${PAGE})`;

/** The first index that differs from its table, in words. In pages: SQLite's check cannot stop. */
export const indexDamage: Scan<File, never, string | undefined> = async ({ file }, { signal }) => {
  using db = openForReading(file);
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
  const damaged = total.findIndex(({ rows, found }, at) => found !== rows || entries[at] !== rows);
  const { index, rows, found } = total[damaged] ?? {};
  if (index === undefined) return undefined;
  return `index ${index} has ${entries[damaged]} entries, and leads to ${found} of ${rows} documents`;
};

/** One checkpoint of the file; the next one moves what this one left. */
export const moveLog: Scan<File, never, void> = async ({ file }) => {
  // A file that is gone is not made again.
  using db = new DatabaseSync(`${pathToFileURL(file).href}?mode=rw`, { timeout: 0 });
  db.exec('PRAGMA synchronous = NORMAL; PRAGMA wal_checkpoint(PASSIVE)');
};
