import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { reasonOf } from '../../runtime/error-text.ts';
import {
  capped,
  codeOf,
  openEventLog,
  openEventLogToRead,
  pagesToMove,
  versionOf,
} from '../../runtime/sqlite.ts';
import { GENESIS_HASH } from '../chain.ts';
import type { HashesAt } from '../port.ts';
import type { Failure, Row, WorkerOptions } from './messages.ts';
import { createSchema, SCHEMA_VERSION } from './schema.ts';

// Earlier versions have a bug in the WAL that can corrupt the file.
const OLDEST_SQLITE = [3, 51, 3] as const;

const SQLITE_BUSY = 5;
const SQLITE_FULL = 13;
const SQLITE_IOERR_WRITE = 778;

const [POSITION, REVISION] = [capped('e.position'), capped('e.revision')];

const LOG_HASH_BEFORE = `CASE e.position WHEN 1 THEN '${GENESIS_HASH}'
  ELSE (SELECT p.log_hash FROM events p WHERE p.position = e.position - 1) END`;
const ROW = `${POSITION}, s.name, ${REVISION}, e.id, e.hash, e.log_hash, e.text, ${LOG_HASH_BEFORE}`;
const EVENTS = 'events e JOIN streams s ON s.id = e.stream_id';

/** `committing`: the failed statement was COMMIT. */
export function failureOf(error: unknown, committing: boolean): Failure {
  const code = codeOf(error);
  const message = `${reasonOf(error)} (SQLite error ${code})`;
  if (code === SQLITE_FULL || code === SQLITE_IOERR_WRITE) {
    return { kind: 'full', message, unknown: false };
  }
  if ((code & 0xff) === SQLITE_BUSY) return { kind: 'busy', message, unknown: false };
  // After a failed fsync the pages may or may not be on the disk, and a second fsync may lie.
  return { kind: 'fatal', message, unknown: committing };
}

/** Throws Error, and SQLite's errors, for a file that cannot be used. */
export function openDatabase({ file, maxPages }: WorkerOptions): DatabaseSync {
  rejectOldSqlite();
  const database = openEventLog(file);
  createSchema(database);
  // Set after the schema is made, which must always fit.
  if (maxPages !== undefined) database.exec(`PRAGMA max_page_count = ${maxPages}`);
  return database;
}

/** By its address (`file:///…?immutable=1`), or a copy's path. Throws as `openDatabase`. */
export function openForReading(file: string): DatabaseSync {
  rejectOldSqlite();
  const database = openEventLogToRead(file);
  if (!file.startsWith('file:')) createSchema(database);
  const version = versionOf(database);
  if (version !== SCHEMA_VERSION)
    throw new Error(`of schema ${version}: read it with its own version`);
  return database;
}

function rejectOldSqlite(): void {
  using nothing = new DatabaseSync(':memory:');
  const version = String(nothing.prepare('SELECT sqlite_version() AS v').get()?.v);
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number);
  const older = major - OLDEST_SQLITE[0] || minor - OLDEST_SQLITE[1] || patch - OLDEST_SQLITE[2];
  if (older < 0) {
    throw new Error(`SQLite ${version} is too old, ${OLDEST_SQLITE.join('.')} is needed`);
  }
}

export function prepareAll(database: DatabaseSync) {
  const rows = (sql: string): StatementSync => {
    const statement = database.prepare(sql);
    statement.setReturnArrays(true);
    return statement;
  };
  return {
    begin: database.prepare('BEGIN IMMEDIATE'),
    commit: database.prepare('COMMIT'),
    end: database.prepare(
      'SELECT position, log_hash AS logHash FROM events ORDER BY position DESC LIMIT 1',
    ),
    last: database.prepare(
      `SELECT s.id, ${REVISION} AS revision, e.hash FROM ${EVENTS} WHERE s.name = ?
       ORDER BY e.revision DESC LIMIT 1`,
    ),
    hasId: database.prepare('SELECT 1 FROM events WHERE id = ?'),
    addStream: database.prepare('INSERT INTO streams (name) VALUES (?) ON CONFLICT DO NOTHING'),
    addEvent: database.prepare(
      `INSERT INTO events (position, stream_id, revision, id, hash, log_hash, text)
       VALUES (?, ?, ?, ?, ?, ?, ?)`,
    ),
    storedFrom: rows(
      `SELECT ${ROW} FROM ${EVENTS} WHERE s.name = ? AND e.revision > ?
       ORDER BY e.revision LIMIT ?`,
    ),
    readStream: rows(`SELECT ${ROW} FROM ${EVENTS} WHERE s.name = ? ORDER BY e.revision`),
    lastRevision: database.prepare(
      `SELECT ${capped('max(e.revision)')} AS revision FROM ${EVENTS} WHERE s.name = ?`,
    ),
    readAll: rows(
      `SELECT ${ROW} FROM ${EVENTS} WHERE e.position > ? AND e.position <= ?
       ORDER BY e.position LIMIT ?`,
    ),
    hashAt: database.prepare('SELECT hash, log_hash AS logHash FROM events WHERE position = ?'),
    timeAfter: database.prepare(
      `SELECT text ->> '$.time' AS time FROM events WHERE position > ? ORDER BY position LIMIT 1`,
    ),
    addMeta: database.prepare('INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO NOTHING'),
    getMeta: database.prepare('SELECT value FROM meta WHERE key = ?'),
    pagesToMove: pagesToMove(database),
    chain: database.prepare(
      `SELECT ${POSITION} AS position, s.name AS stream, ${REVISION} AS revision, e.id, e.hash,
         e.log_hash AS logHash, e.text,
         (SELECT b.hash FROM events b
          WHERE b.stream_id = e.stream_id AND b.revision = e.revision - 1) AS hashBefore
       FROM ${EVENTS} WHERE e.position > ? ORDER BY e.position`,
    ),
  };
}

export type Statements = ReturnType<typeof prepareAll>;

export const readsOf = (statements: Statements) => ({
  readStream: (stream: string) => statements.readStream.all(stream) as unknown as Row[],
  lastRevision: (stream: string) =>
    (statements.lastRevision.get(stream)?.revision ?? null) as number | null,
  readAll: (after: number, upTo: number, limit: number) =>
    statements.readAll.all(after, upTo, limit) as unknown as Row[],
  hashAt: (position: number) => (statements.hashAt.get(position) ?? null) as HashesAt | null,
  timeAfter: (position: number) =>
    (statements.timeAfter.get(position)?.time ?? null) as string | null,
});
export type Reads = ReturnType<typeof readsOf>;
