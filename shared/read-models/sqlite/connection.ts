/** Opening the read models' SQLite file, or an empty one in the place of one that cannot be used; its statements. */
import { rmSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { firstLineOf } from '../../runtime/error-text.ts';
import { ensurePrivateFile } from '../../runtime/private-files.ts';
import {
  capped,
  codeOf,
  isDamage,
  openReadModelsFile,
  openReadModelsToRead,
  pagesToMove,
  versionOf,
} from '../../runtime/sqlite.ts';
import { createRowCheck, type RowCheck } from '../document-row.ts';
import { ReadModelsUnavailable } from '../errors.ts';
import { GENERATION, ROW, schemaOf } from './schema.ts';
import type { SearchBounds } from './search.ts';

/** Of a served file: only a log that the thread of searches could not move. */
const CHECKPOINT_IN_COMMIT_AT_PAGES = 16_000;

const SQLITE_ERROR = 1;

export type SqliteReadModelsOptions = {
  file: string;
  /** The idempotency secret, and the earlier one during a rotation (document-row.ts). */
  secrets: readonly [string, ...string[]];
  /** SQLite itself moves a log of so many pages, inside a commit: 64 MB. */
  checkpointInCommitAtPages?: number;
  searchBounds?: SearchBounds;
  logger?: { warn(fields: object, message: string): void };
};

/** An existing file of another form, or under another key. */
class UnusableFile extends Error {}

const prepare = (db: DatabaseSync) => ({
  begin: db.prepare('BEGIN IMMEDIATE'),
  commit: db.prepare('COMMIT'),
  rollback: db.prepare('ROLLBACK'),
  document: db.prepare(`SELECT ${ROW} FROM payment WHERE payment_id = ?`),
  idsAfter: db.prepare(
    `SELECT payment_id AS paymentId FROM payment WHERE payment_id > ? ORDER BY payment_id LIMIT ?`,
  ),
  isParked: db.prepare('SELECT 1 FROM parked WHERE payment_id = ?'),
  revision: db.prepare(
    `SELECT ${capped('revision')} AS revision FROM payment WHERE payment_id = ?`,
  ),
  write: db.prepare(
    `INSERT INTO payment (payment_id, merchant_id, revision, status, created_at, amount, last4,
       merchant_reference, unresolved_since, unresolved, row_check, body)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (payment_id) DO UPDATE SET revision = excluded.revision, status = excluded.status,
       unresolved_since = excluded.unresolved_since, unresolved = excluded.unresolved,
       row_check = excluded.row_check, body = excluded.body
     WHERE excluded.revision > payment.revision`,
  ),
  park: db.prepare(
    `INSERT INTO parked (payment_id, revision, reason, since) SELECT ?, ?, ?, ?
     WHERE NOT EXISTS (SELECT 1 FROM payment WHERE payment_id = ? AND revision >= ?)
     ON CONFLICT (payment_id) DO UPDATE SET revision = excluded.revision, reason = excluded.reason`,
  ),
  unpark: db.prepare('DELETE FROM parked WHERE payment_id = ? AND revision <= ?'),
  unresolved: db.prepare(
    `SELECT payment_id AS paymentId, merchant_id AS merchantId, unresolved_since AS since
     FROM payment WHERE unresolved_since IS NOT NULL ORDER BY unresolved_since, rowid LIMIT ?`,
  ),
  parked: db.prepare(
    `SELECT payment_id AS paymentId, ${capped('revision')} AS revision, reason, since FROM parked
     WHERE (since, payment_id) > (?, ?) ORDER BY since, payment_id LIMIT ?`,
  ),
  checkpoint: db.prepare('SELECT position, hash FROM checkpoint'),
  pagesToMove: pagesToMove(db),
  move: db.prepare(
    `UPDATE checkpoint SET position = ?1, hash = iif(position IS ?1, hash, ?2)
     WHERE position IS ?3`,
  ),
});

export type Connection = ReturnType<typeof prepare> & {
  db: DatabaseSync;
  rowCheck: RowCheck;
  /** Whether any payment may be parked: spares each read and write a look into an empty table. */
  anyParked: boolean;
};

/** Throws UnusableFile at another generation's tables, or another key's. */
const makeTables = (db: DatabaseSync, { keyIds }: RowCheck): void => {
  const tables = db.prepare('SELECT count(*) AS n FROM sqlite_schema').get();
  if (tables?.n === 0) db.exec(`BEGIN IMMEDIATE; ${schemaOf(keyIds[0] ?? '')} COMMIT;`);
  const found = versionOf(db);
  if (found !== GENERATION)
    throw new UnusableFile(`it has the form ${found}, this version writes ${GENERATION}`);
  const keyId = db.prepare('SELECT key_id AS keyId FROM made_with').get()?.keyId as string;
  if (!keyIds.includes(keyId)) throw new UnusableFile('it was written under another secret');
};

const connect = ({
  file,
  secrets,
  checkpointInCommitAtPages = CHECKPOINT_IN_COMMIT_AT_PAGES,
}: SqliteReadModelsOptions): Connection => {
  ensurePrivateFile(file);
  const db = openReadModelsFile(file, checkpointInCommitAtPages);
  try {
    const rowCheck = createRowCheck(secrets);
    makeTables(db, rowCheck);
    const statements = prepare(db);
    // Damage that the first reads meet is found here, where the file can still be replaced.
    const anyParked = statements.parked.get('', '', 1) !== undefined;
    statements.checkpoint.get();
    return { ...statements, db, rowCheck, anyParked };
  } catch (error) {
    db.close();
    throw error;
  }
};

/** Throws SQLite's errors, at a write as well. */
export const connectToRead = ({
  file,
  secrets,
}: Pick<SqliteReadModelsOptions, 'file' | 'secrets'>): Connection => {
  const db = openReadModelsToRead(file);
  try {
    return { ...prepare(db), db, rowCheck: createRowCheck(secrets), anyParked: true };
  } catch (error) {
    db.close();
    throw error;
  }
};

/** The `-wal` and `-shm` beside a file. */
export const removeLog = (file: string): void => {
  for (const suffix of ['-wal', '-shm']) rmSync(file + suffix, { force: true });
};
export const removeFile = (file: string): void => {
  rmSync(file, { force: true });
  removeLog(file);
};

/** An error of damage, or of a table or column that is missing. */
export const isUnusable = (error: unknown): boolean =>
  isDamage(error) || codeOf(error) % 256 === SQLITE_ERROR;

const openOrReplace = (options: SqliteReadModelsOptions): Connection => {
  const { file, logger } = options;
  try {
    return connect(options);
  } catch (error) {
    if (!(error instanceof UnusableFile || isUnusable(error))) throw error;
    logger?.warn(
      { file, reason: firstLineOf(error) },
      error instanceof UnusableFile
        ? 'read models are filled anew from the event log, as after each upgrade; nothing is lost'
        : 'read models thrown away: the file is damaged; they are filled anew from the event log',
    );
    removeFile(file);
    return connect(options);
  }
};

/** The codes of a file that cannot be opened or made: of SQLite, of the file system, and of its limits. */
const OF_THE_FILE = [
  ...['ERR_SQLITE_ERROR', 'ERR_INVALID_STATE', 'EACCES', 'EROFS', 'ENOENT', 'EPERM'],
  ...['EMFILE', 'ENFILE', 'ENOSPC', 'EDQUOT'],
];

/** ReadModelsUnavailable for an error of the file, also where it lost its class between threads. */
export const unavailable = (error: unknown): unknown => {
  const { code, message } = Object(error) as { code?: string; message: string };
  if (code === 'READ_MODELS_UNAVAILABLE' && !(error instanceof ReadModelsUnavailable))
    return new ReadModelsUnavailable(message);
  if (code === undefined || !OF_THE_FILE.includes(code)) return error;
  return new ReadModelsUnavailable(
    `the file of the read models cannot be used: ${firstLineOf(error)}`,
    { cause: error },
  );
};

/** Opens the file, or an empty one in its place. Throws ReadModelsUnavailable. */
export const openConnection = (options: SqliteReadModelsOptions): Connection => {
  try {
    return openOrReplace(options);
  } catch (error) {
    throw unavailable(error);
  }
};
