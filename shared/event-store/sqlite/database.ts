import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import { reasonOf } from '../../runtime/error-text.ts';
import {
  capped,
  codeOf,
  isDamage,
  lastBefore,
  openEventLog,
  openEventLogToRead,
  pagesToMove,
  versionOf,
} from '../../runtime/sqlite.ts';
import { GENESIS_HASH, LOG_START, type LogEnd, linkLog } from '../chain.ts';
import type { HashesAt, StoredForm } from '../port.ts';
import { createSchema, SCHEMA_VERSION } from './schema.ts';

/** Tests alone set `maxPages`, to meet a full disk. */
export type WriterOptions = { file: string; maxPages?: number | undefined };

/** `revision` and `hash` are those of the expected last event; -1 for an empty stream. */
export type AppendJob = [stream: string, revision: number, hash: string, events: NewRow[]];
/** Threads copy arrays in half the time of objects. */
type NewRow = [id: string, hash: string, text: string];

export type AppendOutcome =
  | [first: number, logHashes: string[]]
  | { repeated: StoredForm[] }
  | { conflict: string };

/** `busy`: try again. `damaged`: a page it needs. `fatal`: no more writes. `unusable`: cannot be opened. */
type FailureKind = 'busy' | 'full' | 'damaged' | 'fatal' | 'unusable';

/** Its fields are plain, so that it keeps them on its way out of the thread. */
export class Failed extends Error {
  override name = 'Failed';
  readonly kind: FailureKind;
  /** The failed commit may turn out to be stored after a restart. */
  readonly unknown: boolean;
  readonly isDamaged: boolean;
  constructor(kind: FailureKind, message: string, unknown = false, isDamaged = false) {
    super(message);
    this.kind = kind;
    this.unknown = unknown;
    this.isDamaged = isDamaged;
  }
}

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

type Row = [number, string, number, string, string, string, string, string | null];

const formOf = (row: Row): StoredForm => {
  const [number, stream, revision, id, hash, logHash, text, logHashBefore] = row;
  return { position: String(number), stream, revision, id, hash, logHash, text, logHashBefore };
};

/** `committing`: the failed statement was COMMIT. */
export function failedOf(error: unknown, committing: boolean): Failed {
  const code = codeOf(error);
  const message = `${reasonOf(error)} (SQLite error ${code})`;
  if (code === SQLITE_FULL || code === SQLITE_IOERR_WRITE) return new Failed('full', message);
  if ((code & 0xff) === SQLITE_BUSY) return new Failed('busy', message);
  const isDamaged = isDamage(error);
  if (isDamaged && !committing) return new Failed('damaged', message, false, isDamaged);
  // After a failed fsync the pages may or may not be on the disk, and a second fsync may lie.
  return new Failed('fatal', message, committing, isDamaged);
}

export function openDatabase({ file, maxPages }: WriterOptions): DatabaseSync {
  rejectOldSqlite();
  const database = openEventLog(file);
  createSchema(database);
  // Set after the schema is made, which must always fit.
  if (maxPages !== undefined) database.exec(`PRAGMA max_page_count = ${maxPages}`);
  return database;
}

/**
 * Writes every row of a log that no process has open into a new file, so that its indexes are made of them:
 * `REINDEX` fails at an empty page. Returns how many events it has. Throws SQLite's errors.
 */
export function copyRows(from: string, to: string): number {
  using database = openDatabase({ file: to });
  // One file, without a write-ahead log next to it.
  database.exec('PRAGMA journal_mode = DELETE');
  database.prepare('ATTACH ? AS damaged').run(from);
  // By the number of the row: without an order SQLite copies the pages of the indexes as they are.
  for (const [table, number] of Object.entries({ streams: 'id', events: 'position', meta: 'key' }))
    database.exec(
      `INSERT INTO main.${table} SELECT * FROM damaged.${table} NOT INDEXED ORDER BY ${number}`,
    );
  database.exec('DETACH damaged');
  return Number(database.prepare('SELECT count(*) AS count FROM events').get()?.count);
}

/** Takes an address (`file:///…?immutable=1`) or a copy's path. Throws like `openDatabase`. */
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
  if (older < 0)
    throw new Error(`SQLite ${version} is too old, ${OLDEST_SQLITE.join('.')} is needed`);
}

export function prepareAll(database: DatabaseSync) {
  const forms = (sql: string) => {
    const statement = database.prepare(sql);
    statement.setReturnArrays(true);
    return (...values: SQLInputValue[]): StoredForm[] =>
      (statement.all(...values) as unknown as Row[]).map(formOf);
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
    storedFrom: forms(
      `SELECT ${ROW} FROM ${EVENTS} WHERE s.name = ? AND e.revision > ?
       ORDER BY e.revision LIMIT ?`,
    ),
    readAll: forms(
      `SELECT ${ROW} FROM ${EVENTS} WHERE e.position > ? AND e.position <= ?
       ORDER BY e.position LIMIT ?`,
    ),
    hashAt: database.prepare('SELECT hash, log_hash AS logHash FROM events WHERE position = ?'),
    firstFrom: database.prepare(
      `SELECT text ->> '$.time' AS time FROM events WHERE position >= ? AND json_valid(text)
       ORDER BY position LIMIT 1`,
    ),
    addMeta: database.prepare('INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO NOTHING'),
    getMeta: database.prepare('SELECT value FROM meta WHERE key = ?'),
    pagesToMove: pagesToMove(database),
  };
}

export type Statements = ReturnType<typeof prepareAll>;

export const readsOf = (statements: Statements) => ({
  readStream: (stream: string) => statements.storedFrom(stream, -1, -1),
  lastRevision: (stream: string) =>
    (statements.last.get(stream)?.revision ?? null) as number | null,
  readAll: (after: number, upTo: number, limit: number) => statements.readAll(after, upTo, limit),
  hashAt: (position: number) => (statements.hashAt.get(position) ?? null) as HashesAt | null,
  /** The last position of the log, 0 when empty. */
  end: () => Number(statements.end.get()?.position ?? 0),
  getMeta: (key: string) => (statements.getMeta.get(key)?.value ?? null) as string | null,
  positionBefore: (time: string) => {
    const last = Number(statements.end.get()?.position ?? 0);
    return lastBefore(time, last, (position) => statements.firstFrom.get(position)?.time);
  },
  timeFrom: (position: number) =>
    (statements.firstFrom.get(position)?.time ?? null) as string | null,
});
export type Reads = ReturnType<typeof readsOf>;

type StreamHead = { id: number; revision: number; hash: string };

/** A job that conflicts leaves the others alone; where the file fails, none is stored: Failed. */
export function appender(database: DatabaseSync, statements: Statements) {
  /** SQLite rolls back by itself after some errors. Throws Failed where it cannot. */
  function rollBack(unknown: boolean): void {
    try {
      if (database.isTransaction) database.exec('ROLLBACK');
    } catch (error) {
      throw new Failed('fatal', reasonOf(error), unknown);
    }
  }

  const storedHead = (stream: string) => statements.last.get(stream) as StreamHead | undefined;

  function streamThatFits([stream, revision, hash]: AppendJob): number | undefined {
    if (revision === -1 && hash === GENESIS_HASH) {
      const { changes, lastInsertRowid } = statements.addStream.run(stream);
      return changes === 0 ? undefined : Number(lastInsertRowid);
    }
    const head = storedHead(stream);
    return head?.revision === revision && head.hash === hash ? head.id : undefined;
  }

  function repeatsIds([, , , events]: AppendJob): boolean {
    const ids = new Set(events.map(([id]) => id));
    return ids.size < events.length || events.some(([id]) => statements.hasId.get(id));
  }

  /** This very append may be stored already, when its response was lost. */
  function repeatOf([stream, revision, , events]: AppendJob): AppendOutcome | undefined {
    const repeated = statements.storedFrom(stream, revision, events.length);
    const isSame =
      repeated.length === events.length && repeated.every(({ id }, at) => id === events[at]?.[0]);
    return isSame ? { repeated } : undefined;
  }

  function insert([, revision, , events]: AppendJob, stream: number, before: LogEnd): string[] {
    let { logHash } = before;
    return events.map(([id, hash, text], at) => {
      logHash = linkLog(logHash, hash);
      const position = before.position + 1 + at;
      statements.addEvent.run(position, stream, revision + 1 + at, id, hash, logHash, text);
      return logHash;
    });
  }

  function append(job: AppendJob, end: LogEnd): { outcome: AppendOutcome; end: LogEnd } {
    if (repeatsIds(job)) {
      const conflict = 'holds one of the event ids elsewhere in the log';
      return { outcome: repeatOf(job) ?? { conflict }, end };
    }
    const stream = streamThatFits(job);
    if (stream === undefined) {
      const conflict = `ends at revision ${storedHead(job[0])?.revision ?? -1}`;
      return { outcome: { conflict }, end };
    }
    const logHashes = insert(job, stream, end);
    const position = end.position + logHashes.length;
    const newEnd = { position, logHash: logHashes.at(-1) ?? end.logHash };
    return { outcome: [end.position + 1, logHashes], end: newEnd };
  }

  return (jobs: AppendJob[]): AppendOutcome[] => {
    let committing = false;
    try {
      statements.begin.run();
      let end = (statements.end.get() as LogEnd | undefined) ?? LOG_START;
      const outcomes = jobs.map((job) => {
        const appended = append(job, end);
        end = appended.end;
        return appended.outcome;
      });
      committing = true;
      statements.commit.run();
      return outcomes;
    } catch (error) {
      const failed = failedOf(error, committing);
      rollBack(failed.unknown);
      throw failed;
    }
  };
}
