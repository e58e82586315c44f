/** Jobs over a read models' file, each by a connection of its own. Each throws SQLite's errors. */
import { pathToFileURL } from 'node:url';
import type { Job } from '../../runtime/jobs.ts';
import { movePages, openReadModelsToRead, openReadModelsWal } from '../../runtime/sqlite.ts';
import { contentOfColumns, createRowCheck, startChecksum } from '../document-row.ts';
import type { PaymentSearch, PaymentSearchPage, ReadModelsChecksum } from '../port.ts';
import { ROW } from './schema.ts';
import { type SearchBounds, type SearchConnection, searchSqlite } from './search.ts';

type File = { file: string };

type SearchArgs = File & {
  secrets: readonly [string, ...string[]];
  search: PaymentSearch;
  limit: number;
  bounds: SearchBounds | undefined;
};

/** Open as long as its thread, which searches one file. */
let searched: SearchConnection | undefined;

export const searchFile: Job<SearchArgs, never, PaymentSearchPage> = async (args) => {
  searched ??= { db: openReadModelsToRead(args.file), rowCheck: createRowCheck(args.secrets) };
  return searchSqlite(searched, args.search, args.limit, args.bounds);
};

export const checksumFile: Job<File, never, ReadModelsChecksum> = async ({ file }) => {
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

/** One checkpoint of the file; the next one moves what this one left. */
export const moveLog: Job<File, never, void> = async ({ file }) => {
  // A file that is gone is not made again.
  using db = openReadModelsWal(`${pathToFileURL(file).href}?mode=rw`);
  movePages(db);
};
