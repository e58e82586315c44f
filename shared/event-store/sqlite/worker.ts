/**
 * The thread that owns the SQLite file of the event store. The main-thread half (event-store.ts) sends
 * it batches of appends, each of which becomes one transaction with one fsync, and reads.
 */
import type { DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import { GENESIS_HASH, LOG_START, type LogEnd, linkLog } from '../chain.ts';
import { describeBreak, type Link, verifyLog } from '../verify-chain.ts';
import {
  failureOf,
  isConstraint,
  messageOf,
  openDatabase,
  openForReading,
  prepareAll,
  type Statements,
} from './database.ts';
import {
  type AppendJob,
  type AppendOutcome,
  Failed,
  type Failure,
  type Reply,
  type Request,
  type Row,
  type WorkerOptions,
} from './messages.ts';
import { versionOf } from './schema.ts';

const TAIL_EVENTS = 100;
// 8 MB: long enough that hot pages are moved once, short enough for a quick start after a crash.
const CHECKPOINT_PAGES = 2000;

const port = parentPort;
if (port === null) throw new Error('worker.ts runs as a worker thread only');
const { file, maxPages, readOnly } = workerData as WorkerOptions;
const reply = (message: Reply): void => port.postMessage(message);

let database: DatabaseSync;
let statements: Statements;
let stopped: Failure | undefined;
let diskFull = false;

const logEnd = (): LogEnd => (statements.end.get() as LogEnd | undefined) ?? LOG_START;

/** Throws Error for a log whose last events were changed while the service was stopped. */
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

/** All jobs in one transaction; a job that conflicts leaves the others alone. */
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
    const logHashes = insert(job, last?.id as number | undefined, end);
    statements.release.run();
    const first = end.position + 1;
    const newEnd = { position: end.position + logHashes.length, logHash: logHashes.at(-1) ?? '' };
    return { outcome: { first, logHashes }, end: newEnd };
  } catch (error) {
    if (!isConstraint(error)) throw error;
    statements.undo.run();
    statements.release.run();
    return { outcome: { conflict: 'holds one of the event ids elsewhere in the log' }, end };
  }
}

/** The links of the job's events in the log. */
function insert(job: AppendJob, knownStream: number | undefined, before: LogEnd): string[] {
  const stream = knownStream ?? statements.addStream.run(job.stream).lastInsertRowid;
  let { position, logHash } = before;
  let revision = job.revision;
  const logHashes: string[] = [];
  for (const [index, text] of job.texts.entries()) {
    const hash = job.hashes[index] as string;
    position += 1;
    revision += 1;
    logHash = linkLog(logHash, hash);
    const id = job.ids[index] as string;
    statements.addEvent.run(position, stream, revision, id, hash, logHash, text);
    logHashes.push(logHash);
  }
  return logHashes;
}

/** The stored rows when this very append has been stored before (its response was lost). */
function repeatOf({ stream, revision, ids }: AppendJob): AppendOutcome | undefined {
  const found = statements.storedFrom.all(stream, revision, ids.length) as unknown as [
    string,
    ...Row,
  ][];
  const same = found.length === ids.length && found.every(([id], index) => id === ids[index]);
  return same ? { repeated: found.map(([, ...row]) => row) } : undefined;
}

/**
 * Moves the WAL into the file after the replies are sent, when it delays no append. SQLite's own
 * checkpoint would run inside a commit and hide a failed fsync, after which the WAL, the only copy
 * of the events, would be overwritten.
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
      return statements.readAll.all(args.after, args.upTo, args.limit);
    case 'storedStream':
      return statements.chainOfStream.all(args.stream);
    case 'storedAll':
      return statements.chainPage.all(args.after, args.upTo, args.limit);
    case 'hashAt':
      return statements.hashAt.get(args.position) ?? null;
    case 'timeAfter':
      return statements.timeAfter.get(args.after)?.time ?? null;
    case 'claimMeta':
      if (!readOnly) statements.addMeta.run(args.key, args.value);
      return statements.getMeta.get(args.key)?.value ?? args.value;
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

/** What is only read can be read on, also where a part of it cannot. */
const unforeseen = (error: unknown): Failure => {
  const failure = failureOf(error, false);
  return readOnly ? { ...failure, kind: 'unusable' } : failure;
};

/** Replies to the call with a failure; a failure that ends no call is sent only when it is fatal. */
function attempt(call: number, work: () => void): void {
  try {
    work();
  } catch (error) {
    const failure = error instanceof Failed ? error.failure : unforeseen(error);
    diskFull = failure.kind === 'full';
    // seeded bug: stop-after-fsync
    if (failure.kind === 'fatal') stopped = { ...failure, unknown: false };
    if (call > 0 || failure.kind === 'fatal') reply({ call, failure });
  }
}

try {
  database = readOnly ? openForReading(file) : openDatabase({ file, maxPages });
  statements = prepareAll(database);
  // seeded bug: tail-verified
  const { position } = readOnly ? logEnd() : verifyTail();
  port.on('message', handle);
  reply({ call: 0, value: position });
} catch (error) {
  const message = `${file}: ${messageOf(error)}`;
  reply({ call: 0, failure: { kind: 'unusable', message, unknown: false } });
  port.close();
}
