/**
 * The search in a thread of its own (search-thread.ts): a second connection to the read models' file,
 * which only reads, and is kept open until it is to be closed.
 */
import { DatabaseSync } from 'node:sqlite';
import type { Scan } from '../../runtime/scan.ts';
import type { PaymentSearch, PaymentSearchPage } from '../port.ts';
import { createRowCheck } from '../row-check.ts';
import { type SearchBounds, type SearchConnection, searchSqlite } from './search.ts';

/** A search of a file; without one, the file is to be closed. */
export type SearchArgs = {
  file: string;
  secrets: readonly [string, ...string[]];
  wanted?: { search: PaymentSearch; limit: number; bounds: SearchBounds | undefined };
};

const WAIT_MS_MAX = 5000;

const opened = new Map<string, SearchConnection>();

/** Opens the file for reading alone. Throws SQLite's errors. */
export const openForReading = (file: string): DatabaseSync => {
  const db = new DatabaseSync(file, { readOnly: true, timeout: WAIT_MS_MAX });
  db.exec('PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA cache_size = -16384');
  return db;
};

const open = ({ file, secrets }: SearchArgs): SearchConnection => {
  const connection = { db: openForReading(file), rowCheck: createRowCheck(secrets) };
  opened.set(file, connection);
  return connection;
};

const close = ({ file }: SearchArgs): void => {
  opened.get(file)?.db.close();
  opened.delete(file);
};

/** A page of the search; undefined where the file was closed. Throws SQLite's errors. */
export const scan: Scan<SearchArgs, never, PaymentSearchPage | undefined> = async (args) => {
  if (args.wanted === undefined) return void close(args);
  const { search, limit, bounds } = args.wanted;
  return searchSqlite(opened.get(args.file) ?? open(args), search, limit, bounds);
};
