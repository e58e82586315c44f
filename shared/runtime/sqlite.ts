/** How this service opens its SQLite files: the settings of each, and the errors of damage. */
import { DatabaseSync, type DatabaseSyncOptions } from 'node:sqlite';

/** For another program's lock on the file. */
const LOCK_MS_MAX = 5000;

/** A changed schema calls no function, and a damaged page is an error. */
const CAREFUL = 'PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;';
const WAL = 'PRAGMA journal_mode = WAL;';
const NORMAL = 'PRAGMA synchronous = NORMAL;';
// 16 MB of pages: with more, a read of any payment costs the same, since the system keeps them too.
const READ_MODELS_CACHE = 'PRAGMA cache_size = -16384;';

/** Closes it where `use` throws. */
export const orClose = <T>(db: DatabaseSync, use: () => T): T => {
  try {
    return use();
  } catch (error) {
    db.close();
    throw error;
  }
};

/** Throws SQLite's errors. */
const opens =
  (settings: string, options: DatabaseSyncOptions = {}) =>
  (file: string): DatabaseSync => {
    const db = new DatabaseSync(file, { timeout: LOCK_MS_MAX, ...options });
    orClose(db, () => db.exec(settings));
    return db;
  };

/** The worker moves its write-ahead log (worker.ts). Without recursive triggers REPLACE deletes past them. */
export const openEventLog = opens(
  `${WAL} ${CAREFUL} PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;
   PRAGMA recursive_triggers = ON; PRAGMA wal_autocheckpoint = 0;`,
);

/** A path opens a copy, whose old schema is brought up to date; an address the log itself. */
export const openEventLogToRead = (file: string): DatabaseSync =>
  opens(CAREFUL, { readOnly: file.startsWith('file:') })(file);

/**
 * NORMAL: a power failure may take the last changes with their checkpoint; they are made again. SQLite
 * itself moves a write-ahead log of so many pages, inside a commit.
 */
export const openReadModelsFile = (file: string, moveAtPages: number): DatabaseSync =>
  opens(`${WAL} ${CAREFUL} ${READ_MODELS_CACHE} ${NORMAL}
    PRAGMA wal_autocheckpoint = ${moveAtPages};`)(file);

export const openReadModelsToRead = opens(`${CAREFUL} ${READ_MODELS_CACHE}`, { readOnly: true });

/** For a moment, to move its write-ahead log. */
export const openReadModelsWal = opens(NORMAL, { timeout: 0 });

/** NORMAL: a power failure may take the last changes; then their messages are sent again. */
export const openDeliveriesFile = opens(`${WAL} ${CAREFUL} ${NORMAL}`);

/** FULL: a key is on the disk before its box is. */
export const openKeysFile = opens(
  `${WAL} ${CAREFUL} PRAGMA synchronous = FULL; PRAGMA secure_delete = ON;`,
);

export const openKeysToRead = opens(CAREFUL, { readOnly: true });

/** `FULL`: on the disk before the response; `NORMAL`: with the operating system. */
export type Durability = 'FULL' | 'NORMAL';

export const openLedgerFile = (file: string, durability: Durability): DatabaseSync =>
  opens(`${WAL} ${CAREFUL} PRAGMA synchronous = ${durability};`, { timeout: 0 })(file);

/** Runs a step that need not be durable and waits for no lock, over the log that a commit makes durable. */
export const withoutSync = (db: DatabaseSync, step: () => void): void => {
  try {
    db.exec('PRAGMA synchronous = NORMAL; PRAGMA busy_timeout = 0');
    step();
  } finally {
    db.exec(`PRAGMA synchronous = FULL; PRAGMA busy_timeout = ${LOCK_MS_MAX}`);
  }
};

/** Stores all that `step` writes, or nothing. Throws what `step` throws, and SQLite's errors. */
export const inTransaction = <T>(db: DatabaseSync, step: () => T): T => {
  db.exec('BEGIN IMMEDIATE');
  try {
    const result = step();
    db.exec('COMMIT');
    return result;
  } catch (error) {
    // SQLite rolls back by itself after some errors.
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
};

/** The number of the file's schema. */
export const versionOf = (db: DatabaseSync): number =>
  Number(db.prepare('PRAGMA user_version').get()?.user_version);

/** Counts the pages of the write-ahead log that are not in the file yet. */
export const pagesToMove = (db: DatabaseSync): (() => number) => {
  const statement = db.prepare('PRAGMA wal_checkpoint(NOOP)');
  return () => {
    const { log, checkpointed } = statement.get() as { log: number; checkpointed: number };
    return log - checkpointed;
  };
};

/** As many pages of the write-ahead log as no reader needs there. */
export const movePages = (db: DatabaseSync): void => db.exec('PRAGMA wal_checkpoint(PASSIVE)');

/** All pages, before the file is closed; waits for no reader. */
export const moveAllPages = (db: DatabaseSync): void =>
  db.exec('PRAGMA busy_timeout = 0; PRAGMA wal_checkpoint(TRUNCATE)');

const CORRUPT = 11;
const NOT_A_DATABASE = 26;

/** SQLite's own code, 0 for an error that is not SQLite's. */
export const codeOf = (error: unknown): number => Number(Object(error).errcode ?? 0);

export const isDamage = (error: unknown): boolean =>
  [CORRUPT, NOT_A_DATABASE].includes(codeOf(error) & 0xff);

/** node:sqlite throws above 2^53-1, which only tampering writes; capped, it breaks a check, and is reported. */
export const capped = (column: string): string =>
  `max(-${Number.MAX_SAFE_INTEGER}, min(${column}, ${Number.MAX_SAFE_INTEGER}))`;

/** By halves: of rows that are numbered from 1 in the order of their times, the last one before `time`. */
export const lastBefore = (
  time: string,
  last: number,
  timeOf: (row: number) => unknown,
): number | undefined => {
  let [low, high] = [0, last];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (String(timeOf(middle) ?? '') < time) low = middle;
    else high = middle - 1;
  }
  return low === 0 ? undefined : low;
};
