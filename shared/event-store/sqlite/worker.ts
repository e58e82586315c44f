/**
 * The thread that owns the SQLite file of the event store. event-store.ts sends it reads, and groups of
 * appends, each of which becomes one transaction with one fsync.
 */
import { statSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { LOG_START, type LogEnd } from '../chain.ts';
import { describeBreak, type Link, verifyLog } from '../verify-chain.ts';
import { appender } from './appends.ts';
import {
  BUSY_MS,
  failureOf,
  messageOf,
  openDatabase,
  openForReading,
  prepareAll,
  readsOf,
  type Statements,
} from './database.ts';
import {
  type AppendJob,
  type AppendOutcome,
  Failed,
  type Failure,
  type Reply,
  type WorkerOptions,
} from './messages.ts';
import { versionOf } from './schema.ts';

const TAIL_EVENTS = 100;
/** A page for each write in the write-ahead log. */
const PROBE_PAGES = 8;
// 8 MB: long enough that hot pages are moved once, short enough for a quick start after a crash.
const CHECKPOINT_PAGES = 2000;

const port = parentPort;
if (port === null) throw new Error('worker.ts runs as a worker thread only');
const { file, maxPages, readOnly } = workerData as WorkerOptions;
const reply = (message: Reply): void => port.postMessage(message);

/** Throws Error for a log whose last events were changed while the service was stopped. */
function verifyTail(statements: Statements, end: LogEnd): void {
  const start = Math.max(0, end.position - TAIL_EVENTS);
  const before = statements.hashAt.get(start) as Omit<LogEnd, 'position'> | undefined;
  if (start > 0 && before === undefined)
    throw new Error(`the event log is damaged: position ${start} is missing`);
  const links = statements.chain.iterate(start) as Iterable<Link<number>>;
  const result = verifyLog(links, before && { position: start, logHash: before.logHash });
  if ('broken' in result) {
    throw new Error(`the event log is damaged at ${describeBreak(result.broken)}`);
  }
}

function open() {
  try {
    const database = readOnly ? openForReading(file) : openDatabase({ file, maxPages });
    const statements = prepareAll(database);
    const end = (statements.end.get() as LogEnd | undefined) ?? LOG_START;
    if (!readOnly) verifyTail(statements, end);
    return { database, statements, end };
  } catch (error) {
    const message = `${file}: ${messageOf(error)}`;
    reply({ call: 0, failure: { kind: 'unusable', message, unknown: false } });
    return process.exit();
  }
}

/** Undefined where nothing is there, or nothing can be said. */
function identityOf(path: string): string | undefined {
  try {
    // Whole: of a number of 64 bits, as overlayfs and FUSE give them, a double drops the last ones.
    const { dev, ino } = statSync(path, { bigint: true });
    return `${dev} ${ino}`;
  } catch {
    return undefined;
  }
}

/** What the names of the file and its write-ahead log, which is there while the file is open, lead to. */
const placeOf = (): string => `${identityOf(file)} ${identityOf(`${file}-wal`)}`;

const { database, statements, end } = open();
const append = appender(database, statements);
const place = placeOf();
let stopped: Failure | undefined;
let diskFull = false;

/**
 * Before a group is acknowledged: SQLite goes on in a file that was deleted or moved away, and what it
 * commits there is gone with the process. Throws Failed where a start would open another file.
 */
function requireInPlace(): void {
  if (placeOf() === place) return;
  const message = `${file} or its -wal was moved, deleted or replaced while it was open`;
  throw new Failed({ kind: 'fatal', message, unknown: true });
}

/**
 * Moves the write-ahead log into the file once it is long, between two groups and after the replies. SQLite's
 * own checkpoint would run inside a commit and hide a failed fsync, after which the log, the only copy of
 * the events, would be written over. Throws SQLite's errors.
 */
function checkpoint(): void {
  if (stopped !== undefined) return;
  const { log, checkpointed } = statements.walPages.get() as { log: number; checkpointed: number };
  // A full disk may need no more than the pages of the log to be written over.
  if (!diskFull && log - checkpointed < CHECKPOINT_PAGES) return;
  diskFull = false;
  database.exec('PRAGMA wal_checkpoint(PASSIVE)');
}

/**
 * Writes as many pages as a payment takes: a disk with room for one page and not for an event would be
 * ready now and reject the next append. With many more it would itself take the room that a small disk has.
 * It stores nothing, so it need not be durable. Throws SQLite's errors.
 */
function writePages(): void {
  const write = `PRAGMA user_version = ${versionOf(database)}`;
  try {
    database.exec('PRAGMA synchronous = NORMAL; PRAGMA busy_timeout = 0');
    for (let pages = 0; pages < PROBE_PAGES; pages += 1) database.exec(write);
  } finally {
    database.exec(`PRAGMA synchronous = FULL; PRAGMA busy_timeout = ${BUSY_MS}`);
  }
}

function requireWritable(): void {
  if (stopped !== undefined) throw new Failed(stopped);
}

/** The calls of the thread (thread.ts). */
const handlers = {
  ...readsOf(statements),
  append(jobs: AppendJob[]): AppendOutcome[] {
    requireWritable();
    const outcomes = append(jobs);
    requireInPlace();
    return outcomes;
  },
  claimMeta(key: string, value: string): string {
    if (!readOnly) statements.addMeta.run(key, value);
    return String(statements.getMeta.get(key)?.value ?? value);
  },
  /** Whether the disk takes events. */
  probe(): void {
    requireWritable();
    writePages();
  },
  /** The last call. */
  close: () => database.close(),
};
export type Handlers = typeof handlers;

/** Calls are numbered from 1. */
type Request = { call: number; name: keyof Handlers; args: unknown[] };

function handle({ call, name, args }: Request): void {
  const work = handlers[name] as (...args: unknown[]) => unknown;
  attempt(call, () => reply({ call, value: work(...args) }));
  if (name === 'append' || name === 'probe') attempt(-1, checkpoint);
  if (name === 'close') port?.close();
}

/** A damaged part of a file that is only read does not keep the rest from being read. */
const unforeseen = (error: unknown): Failure => {
  const failure = failureOf(error, false);
  return readOnly ? { ...failure, kind: 'unusable' } : failure;
};

/** A failure that ends no call is sent only when it is fatal. */
function attempt(call: number, work: () => void): void {
  try {
    work();
  } catch (error) {
    const failure = error instanceof Failed ? error.failure : unforeseen(error);
    diskFull = failure.kind === 'full';
    if (failure.kind === 'fatal') stopped = { ...failure, unknown: false };
    if (call > 0 || failure.kind === 'fatal') reply({ call, failure });
  }
}

port.on('message', handle);
reply({ call: 0, value: end.position });
