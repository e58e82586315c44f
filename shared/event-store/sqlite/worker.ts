/**
 * The thread that owns the SQLite file of the event store. The main-thread half (sqlite.ts) sends
 * it batches of appends, each of which becomes one transaction with one fsync, and reads.
 */
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import { GENESIS_HASH, LOG_START, type LogEnd, linkLog } from '../chain.ts';
import { describeBreak, type Link, verifyLog } from '../verify-chain.ts';
import { createSchema, versionOf } from './schema.ts';

/** `maxPages` caps the file's size; only tests set it, to meet a full disk. */
export type WorkerOptions = { file: string; maxPages?: number | undefined };

/** One append. `revision` and `hash` are those of the stream's expected last event, -1 for none. */
export type AppendJob = {
  stream: string;
  revision: number;
  hash: string;
  ids: string[];
  hashes: string[];
  texts: string[];
};

/** A stored event: position, stream, revision, hash, text. */
export type Row = [number, string, number, string, string];

/** The first position of a stored append; the rows of one stored before; or why it was refused. */
export type AppendOutcome = number | { repeated: Row[] } | { conflict: string };

/** `busy`: try again later; `full`: the disk is; `fatal`: take no more writes, exit; `unusable`: the file cannot be opened. */
export type FailureKind = 'busy' | 'full' | 'fatal' | 'unusable';
/** `unknown` is true when the failed commit may turn out to be stored after a restart. */
export type Failure = { kind: FailureKind; message: string; unknown: boolean };

/** What can be asked of the thread, and what it answers. */
export type Asks = {
  append: { args: { jobs: AppendJob[] }; response: AppendOutcome[] };
  readStream: { args: { stream: string }; response: Row[] };
  lastRevision: { args: { stream: string }; response: number | null };
  readAll: { args: { after: number; limit: number }; response: Row[] };
  /** Rows as they are stored, with all that their chains rest on. */
  storedStream: { args: { stream: string }; response: Link<number>[] };
  storedAll: { args: { after: number; limit: number }; response: Link<number>[] };
  hashAt: { args: { position: number }; response: string | null };
  /** The time of the first event after a position. */
  timeAfter: { args: { after: number }; response: string | null };
  claimMeta: { args: { key: string; value: string }; response: string };
  /** A small durable write that changes nothing: whether the disk takes events. */
  probe: { args: object; response: null };
  /** Ends the thread, after everything asked before. */
  close: { args: object; response: null };
};
export type AskName = keyof Asks;

/** Calls are numbered from 1. */
export type Request = {
  [N in AskName]: { call: number; name: N; args: Asks[N]['args'] };
}[AskName];

/** Call 0 answers the start with the last position; -1 is a failure that nobody asked for. */
export type Reply = { call: number; value: unknown } | { call: number; failure: Failure };

// The fix of a WAL bug that could corrupt the file is in this version and later ones.
const OLDEST_SQLITE = [3, 51, 3] as const;
const TAIL_EVENTS = 100;
// 8 MB: long enough that hot pages are moved once, short enough for a quick start after a crash.
const CHECKPOINT_PAGES = 2000;

const SQLITE_BUSY = 5;
const SQLITE_FULL = 13;
const SQLITE_CONSTRAINT = 19;
const SQLITE_IOERR_WRITE = 778;

const ROW = 'e.position, s.name, e.revision, e.hash, e.text';
const EVENTS = 'events e JOIN streams s ON s.id = e.stream_id';

// No number that somebody else has put there may stop the reading: the chain tells of it.
const CHAIN_ROWS = `SELECT min(e.position, ${Number.MAX_SAFE_INTEGER}) AS position,
    s.name AS stream, min(e.revision, ${Number.MAX_SAFE_INTEGER}) AS revision, e.id, e.hash,
    e.log_hash AS logHash, e.text,
    (SELECT b.hash FROM events b
     WHERE b.stream_id = e.stream_id AND b.revision = e.revision - 1) AS hashBefore
  FROM ${EVENTS}`;

const port = parentPort;
if (port === null) throw new Error('sqlite-worker.ts runs as a worker thread only');
const { file, maxPages } = workerData as WorkerOptions;
const reply = (message: Reply): void => port.postMessage(message);

class Failed extends Error {
  readonly failure: Failure;
  constructor(failure: Failure) {
    super(failure.message);
    this.failure = failure;
  }
}

const codeOf = (error: unknown): number => Number(Object(error).errcode ?? 0);
const messageOf = (error: unknown): string => String(Object(error).message ?? error);

function failureOf(error: unknown, committing: boolean): Failure {
  const code = codeOf(error);
  const message = `${messageOf(error)} (SQLite error ${code})`;
  if (code === SQLITE_FULL || code === SQLITE_IOERR_WRITE) {
    return { kind: 'full', message, unknown: false };
  }
  if ((code & 0xff) === SQLITE_BUSY) return { kind: 'busy', message, unknown: false };
  // After a failed fsync the pages may or may not be on the disk, and a second fsync may lie.
  // seeded bug: commit-of-unknown-outcome
  return { kind: 'fatal', message, unknown: committing };
}

function openDatabase(): DatabaseSync {
  const database = new DatabaseSync(file, { timeout: 5000 });
  rejectOldSqlite(database);
  // seeded bug: commit-on-disk
  database.exec(`
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA foreign_keys = ON;
    PRAGMA trusted_schema = OFF;
    PRAGMA cell_size_check = ON;
    PRAGMA recursive_triggers = ON; -- else REPLACE deletes past the triggers
    PRAGMA wal_autocheckpoint = 0; -- see checkpoint()
  `);
  createSchema(database);
  // After the schema, which must always fit.
  if (maxPages !== undefined) database.exec(`PRAGMA max_page_count = ${maxPages}`);
  return database;
}

function rejectOldSqlite(database: DatabaseSync): void {
  const version = String(database.prepare('SELECT sqlite_version() AS v').get()?.v);
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number);
  const older = major - OLDEST_SQLITE[0] || minor - OLDEST_SQLITE[1] || patch - OLDEST_SQLITE[2];
  if (older < 0) {
    throw new Error(`SQLite ${version} is too old, ${OLDEST_SQLITE.join('.')} is needed`);
  }
}

function prepareAll(database: DatabaseSync) {
  const rows = (sql: string): StatementSync => {
    const statement = database.prepare(sql);
    statement.setReturnArrays(true);
    return statement;
  };
  return {
    begin: database.prepare('BEGIN IMMEDIATE'),
    commit: database.prepare('COMMIT'),
    savepoint: database.prepare('SAVEPOINT append'),
    release: database.prepare('RELEASE append'),
    undo: database.prepare('ROLLBACK TO append'),
    end: database.prepare(
      'SELECT position, log_hash AS logHash FROM events ORDER BY position DESC LIMIT 1',
    ),
    last: database.prepare(
      `SELECT s.id, e.revision, e.hash FROM ${EVENTS} WHERE s.name = ?
       ORDER BY e.revision DESC LIMIT 1`,
    ),
    addStream: database.prepare('INSERT INTO streams (name) VALUES (?)'),
    addEvent: database.prepare(
      `INSERT INTO events (position, stream_id, revision, id, hash, log_hash, text)
       VALUES (?, ?, ?, ?, ?, ?, ?)`,
    ),
    storedFrom: rows(
      `SELECT e.id, ${ROW} FROM ${EVENTS} WHERE s.name = ? AND e.revision > ?
       ORDER BY e.revision LIMIT ?`,
    ),
    readStream: rows(`SELECT ${ROW} FROM ${EVENTS} WHERE s.name = ? ORDER BY e.revision`),
    lastRevision: database.prepare(
      `SELECT max(e.revision) AS revision FROM ${EVENTS} WHERE s.name = ?`,
    ),
    readAll: rows(`SELECT ${ROW} FROM ${EVENTS} WHERE e.position > ? ORDER BY e.position LIMIT ?`),
    hashAt: database.prepare('SELECT hash FROM events WHERE position = ?'),
    timeAfter: database.prepare(
      `SELECT text ->> '$.time' AS time FROM events WHERE position > ? ORDER BY position LIMIT 1`,
    ),
    addMeta: database.prepare('INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO NOTHING'),
    getMeta: database.prepare('SELECT value FROM meta WHERE key = ?'),
    walPages: database.prepare('PRAGMA wal_checkpoint(NOOP)'),
    chain: database.prepare(`${CHAIN_ROWS} WHERE e.position > ? ORDER BY e.position`),
    chainPage: database.prepare(`${CHAIN_ROWS} WHERE e.position > ? ORDER BY e.position LIMIT ?`),
    chainOfStream: database.prepare(`${CHAIN_ROWS} WHERE s.name = ? ORDER BY e.revision`),
    endAt: database.prepare('SELECT position, log_hash AS logHash FROM events WHERE position = ?'),
  };
}

let database: DatabaseSync;
let statements: ReturnType<typeof prepareAll>;
let stopped: Failure | undefined;
let diskFull = false;

const logEnd = (): LogEnd => (statements.end.get() as LogEnd | undefined) ?? LOG_START;

/** Refuses a log whose last events were changed while the service was stopped. */
function verifyTail(): LogEnd {
  const end = logEnd();
  const start = Math.max(0, end.position - TAIL_EVENTS);
  const before = start === 0 ? LOG_START : (statements.endAt.get(start) as LogEnd | undefined);
  if (before === undefined)
    throw new Error(`the event log is damaged: position ${start} is missing`);
  const result = verifyLog(statements.chain.iterate(start) as Iterable<Link<number>>, before);
  if ('broken' in result) {
    throw new Error(`the event log is damaged at ${describeBreak(result.broken)}`);
  }
  return end;
}

/** All jobs in one transaction; a refused one leaves the others alone. */
function append(jobs: AppendJob[]): AppendOutcome[] {
  if (stopped !== undefined) throw new Failed(stopped);
  let committing = false;
  try {
    statements.begin.run();
    let end = logEnd();
    const outcomes = jobs.map((job) => {
      const appended = appendOne(job, end);
      end = appended.end;
      return appended.outcome;
    });
    committing = true;
    statements.commit.run();
    return outcomes;
  } catch (error) {
    throw new Failed(rolledBack(failureOf(error, committing)));
  }
}

function rolledBack(failure: Failure): Failure {
  try {
    // SQLite has already rolled back by itself after some errors.
    if (database.isTransaction) database.exec('ROLLBACK');
    return failure;
  } catch (error) {
    return { ...failure, kind: 'fatal', message: messageOf(error) };
  }
}

function appendOne(job: AppendJob, end: LogEnd): { outcome: AppendOutcome; end: LogEnd } {
  const last = statements.last.get(job.stream);
  const revision = Number(last?.revision ?? -1);
  // seeded bug: append-expected
  if (revision !== job.revision || (last?.hash ?? GENESIS_HASH) !== job.hash) {
    return { outcome: repeatOf(job) ?? { conflict: `ends at revision ${revision}` }, end };
  }
  statements.savepoint.run();
  try {
    const newEnd = insert(job, last?.id as number | undefined, end);
    statements.release.run();
    return { outcome: end.position + 1, end: newEnd };
  } catch (error) {
    if ((codeOf(error) & 0xff) !== SQLITE_CONSTRAINT) throw error;
    statements.undo.run();
    statements.release.run();
    return { outcome: { conflict: 'holds one of the event ids elsewhere in the log' }, end };
  }
}

function insert(job: AppendJob, knownStream: number | undefined, before: LogEnd): LogEnd {
  const stream = knownStream ?? statements.addStream.run(job.stream).lastInsertRowid;
  let { position, logHash } = before;
  let revision = job.revision;
  for (const [index, text] of job.texts.entries()) {
    const hash = job.hashes[index] as string;
    position += 1;
    revision += 1;
    logHash = linkLog(logHash, hash);
    const id = job.ids[index] as string;
    statements.addEvent.run(position, stream, revision, id, hash, logHash, text);
  }
  return { position, logHash };
}

/** The stored rows when this very append has been stored before (its answer was lost). */
function repeatOf({ stream, revision, ids }: AppendJob): AppendOutcome | undefined {
  const found = statements.storedFrom.all(stream, revision, ids.length) as unknown as [
    string,
    ...Row,
  ][];
  const same = found.length === ids.length && found.every(([id], index) => id === ids[index]);
  return same ? { repeated: found.map(([, ...row]) => row) } : undefined;
}

/**
 * Moves the WAL into the file after the answers are out, where it delays nobody. SQLite's own
 * checkpoint would run inside a commit and swallow a failed fsync, after which the WAL that still
 * held the events would be overwritten.
 */
function checkpoint(): void {
  if (stopped !== undefined) return;
  const { log, checkpointed } = statements.walPages.get() as { log: number; checkpointed: number };
  // On a full disk a WAL that has been moved can be written over, which may be all that is needed.
  if (log - checkpointed < CHECKPOINT_PAGES && !diskFull) return;
  diskFull = false;
  database.exec('PRAGMA wal_checkpoint(PASSIVE)');
}

function response(request: Request): unknown {
  const { name, args } = request;
  switch (name) {
    case 'append':
      return append(args.jobs);
    case 'readStream':
      return statements.readStream.all(args.stream);
    case 'lastRevision':
      return statements.lastRevision.get(args.stream)?.revision ?? null;
    case 'readAll':
      return statements.readAll.all(args.after, args.limit);
    case 'storedStream':
      return statements.chainOfStream.all(args.stream);
    case 'storedAll':
      return statements.chainPage.all(args.after, args.limit);
    case 'hashAt':
      return statements.hashAt.get(args.position)?.hash ?? null;
    case 'timeAfter':
      return statements.timeAfter.get(args.after)?.time ?? null;
    case 'claimMeta':
      statements.addMeta.run(args.key, args.value);
      return statements.getMeta.get(args.key)?.value;
    case 'probe':
      if (stopped !== undefined) throw new Failed(stopped);
      database.exec(`PRAGMA user_version = ${versionOf(database)}`);
      return null;
    case 'close':
      database.close();
      return null;
  }
}

function handle(request: Request): void {
  attempt(request.call, () => reply({ call: request.call, value: response(request) }));
  if (request.name === 'close') port?.close();
  else if (request.name === 'append' || request.name === 'probe') attempt(-1, checkpoint);
}

/** Reports a failure under the call; one that nobody asked about only when it is the end. */
function attempt(call: number, work: () => void): void {
  try {
    work();
  } catch (error) {
    const failure = error instanceof Failed ? error.failure : failureOf(error, false);
    diskFull = failure.kind === 'full';
    // seeded bug: stop-after-fsync
    if (failure.kind === 'fatal') stopped = { ...failure, unknown: false };
    if (call > 0 || failure.kind === 'fatal') reply({ call, failure });
  }
}

try {
  database = openDatabase();
  statements = prepareAll(database);
  // seeded bug: tail-verified
  const { position } = verifyTail();
  port.on('message', handle);
  reply({ call: 0, value: position });
} catch (error) {
  const message = `${file}: ${messageOf(error)}`;
  reply({ call: 0, failure: { kind: 'unusable', message, unknown: false } });
  port.close();
}
