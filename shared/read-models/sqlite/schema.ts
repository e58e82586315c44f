/** The tables, a payment's row, and a connection with its statements. A file with other tables is filled anew. */
import type { DatabaseSync } from 'node:sqlite';
import { READ_MODEL_VERSION } from '../../payment/fold.ts';
import { ensurePrivateFile } from '../../runtime/private-files.ts';
import {
  capped,
  openReadModelsFile,
  openReadModelsToRead,
  orClose,
  pagesToMove,
  versionOf,
} from '../../runtime/sqlite.ts';
import { createRowCheck, type DocumentRow, type RowCheck } from '../document-row.ts';
import type { ReadModelsFile } from '../port.ts';

/** Names the tables below and the check of their rows; raise it with any change of either. */
const SCHEMA_VERSION = 9;
/** Stored as user_version: a file with another number is filled anew. */
const GENERATION = SCHEMA_VERSION * 10_000 + READ_MODEL_VERSION;

/** Without PENDING (the unresolved have an index) and CAPTURED (most payments are): a sale pays for none. */
export const INDEXED_STATUSES = ['AUTHORIZED', 'FAILED', 'REFUNDED', 'VOIDED'] as const;
/** A search has to say this to the letter for SQLite to take the index of the statuses. */
export const HAS_INDEXED_STATUS = `status IN (${INDEXED_STATUSES.map((one) => `'${one}'`).join(', ')})`;

/** Of all payments, or of those that `of` holds for. */
export type PaymentIndex = { name: string; columns: readonly string[]; of?: string };

/** An index of last4 would cost a new payment a third of its time (random places), so others end in it. */
const SEARCHED: readonly PaymentIndex[] = [
  {
    name: 'payment_unresolved',
    columns: ['unresolved_since'],
    of: 'unresolved_since IS NOT NULL',
  },
  {
    name: 'payment_status',
    columns: ['status', 'merchant_id', 'created_at', 'payment_id', 'last4', 'amount'],
    of: HAS_INDEXED_STATUS,
  },
  {
    name: 'payment_merchant',
    columns: ['merchant_id', 'created_at', 'payment_id', 'last4', 'amount'],
  },
  {
    name: 'payment_reference',
    columns: ['merchant_reference', 'merchant_id', 'created_at', 'payment_id'],
    of: 'merchant_reference IS NOT NULL',
  },
];

/** With the one that SQLite makes of the primary key. */
export const PAYMENT_INDEXES: readonly [PaymentIndex, ...PaymentIndex[]] = [
  { name: 'sqlite_autoindex_payment_1', columns: ['payment_id'] },
  ...SEARCHED,
];

const created = ({ name, columns, of }: PaymentIndex): string =>
  `CREATE INDEX ${name} ON payment (${columns.join(', ')})${of === undefined ? '' : ` WHERE ${of}`};`;

/**
 * A file whose key (`made_with`, document-row.ts) is unknown is filled anew. Columns that never change are
 * written once, so updates leave their indexes alone; searched ones stand before the body, where a scan stops.
 */
const SCHEMA = `
  CREATE TABLE payment (
    payment_id TEXT NOT NULL PRIMARY KEY,
    merchant_id TEXT NOT NULL,
    revision INTEGER NOT NULL,
    status TEXT NOT NULL,
    created_at TEXT NOT NULL,
    amount INTEGER NOT NULL,
    last4 TEXT NOT NULL,
    merchant_reference TEXT,
    unresolved_since TEXT,
    unresolved TEXT,
    row_check TEXT NOT NULL,
    body TEXT NOT NULL
  ) STRICT;
  ${SEARCHED.map(created).join('\n')}
  CREATE TABLE parked (
    payment_id TEXT NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL,
    reason TEXT NOT NULL,
    since TEXT NOT NULL
  ) STRICT;
  CREATE TABLE checkpoint (only INTEGER PRIMARY KEY CHECK (only = 1), position TEXT, hash TEXT) STRICT;
  INSERT INTO checkpoint VALUES (1, NULL, NULL);
  CREATE TABLE made_with (only INTEGER PRIMARY KEY CHECK (only = 1), key_id TEXT NOT NULL) STRICT;
  PRAGMA user_version = ${GENERATION};
`;

export type CheckedRow = DocumentRow & { rowCheck: string };

/** The columns of CheckedRow: those of `columnsOf`, the check, the body. */
export const ROW = `payment_id AS paymentId, merchant_id AS merchantId, ${capped('revision')} AS revision,
  status, created_at AS createdAt, ${capped('amount')} AS amount, last4,
  merchant_reference AS merchantReference, unresolved_since AS unresolvedSince, unresolved,
  row_check AS rowCheck, body`;

const prepare = (db: DatabaseSync) => ({
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

/** An existing file of another form, or under another key. */
export class UnusableFile extends Error {}

export type FileConnection = ReturnType<typeof prepare> & {
  db: DatabaseSync;
  rowCheck: RowCheck;
  /** Whether any payment may be parked: spares each read and write a look into an empty table. */
  anyParked: boolean;
};

/** Throws UnusableFile at another generation's tables, or another key's. */
const makeTables = (db: DatabaseSync, { keyIds }: RowCheck): void => {
  const tables = db.prepare('SELECT count(*) AS n FROM sqlite_schema').get();
  if (tables?.n === 0) {
    db.exec(`BEGIN IMMEDIATE; ${SCHEMA}`);
    db.prepare('INSERT INTO made_with VALUES (1, ?)').run(keyIds[0] ?? '');
    db.exec('COMMIT');
  }
  const found = versionOf(db);
  if (found !== GENERATION)
    throw new UnusableFile(`it has the form ${found}, this version writes ${GENERATION}`);
  const keyId = db.prepare('SELECT key_id AS keyId FROM made_with').get()?.keyId as string;
  if (!keyIds.includes(keyId)) throw new UnusableFile('it was written under another secret');
};

/** Of a served file: only a log that the thread of searches could not move. */
const CHECKPOINT_IN_COMMIT_AT_PAGES = 16_000;

export type ConnectOptions = ReadModelsFile & {
  /** SQLite itself moves a log of so many pages, inside a commit: 64 MB. */
  checkpointInCommitAtPages?: number;
};

/** To write: makes a file that is not there. Throws UnusableFile and SQLite's errors. */
export const connectToWrite = ({
  file,
  secrets,
  checkpointInCommitAtPages = CHECKPOINT_IN_COMMIT_AT_PAGES,
}: ConnectOptions): FileConnection => {
  ensurePrivateFile(file);
  const db = openReadModelsFile(file, checkpointInCommitAtPages);
  return orClose(db, () => {
    const rowCheck = createRowCheck(secrets);
    makeTables(db, rowCheck);
    const statements = prepare(db);
    // Damage that the first reads meet is found here, where the file can still be replaced.
    const anyParked = statements.parked.get('', '', 1) !== undefined;
    statements.checkpoint.get();
    return { ...statements, db, rowCheck, anyParked };
  });
};

/** Throws SQLite's errors, at a write as well. */
export const connectToRead = ({ file, secrets }: ReadModelsFile): FileConnection => {
  const db = openReadModelsToRead(file);
  const rowCheck = createRowCheck(secrets);
  return orClose(db, () => ({ ...prepare(db), db, rowCheck, anyParked: true }));
};
