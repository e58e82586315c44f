/** Makes what a new generation's file lacks once it is filled (make-whole.ts). */
import { close, fdatasync, openSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { promisify } from 'node:util';
import type { Scan } from '../../runtime/scan.ts';
import { INDEXES } from './schema.ts';

/** The address of this module, for who orders the scan. */
export const MAKE_WHOLE_SCAN = import.meta.url;

export type MakeWholeArgs = { file: string };

const makeIndexes = (file: string): void => {
  const db = new DatabaseSync(file);
  try {
    // The rows of an index are sorted within the cache where they fit into it.
    db.exec('PRAGMA journal_mode = MEMORY; PRAGMA synchronous = FULL; PRAGMA cache_size = -65536');
    db.exec(`BEGIN IMMEDIATE; ${INDEXES} COMMIT; PRAGMA journal_mode = WAL`);
  } finally {
    db.close();
  }
};

/** All of the file is on disk afterwards: a rename puts it in the place of a file that is. */
export const scan: Scan<MakeWholeArgs, never, void> = async ({ file }, { call }) => {
  await call('begin');
  const filled = openSync(file, 'r+');
  try {
    // What was filled is written to the disk beside the indexes, and not when they are made.
    const written = promisify(fdatasync)(filled);
    makeIndexes(file);
    await written;
  } finally {
    // Closed last: that ends the locks which other connections of this process have on the file.
    close(filled, () => undefined);
  }
};
