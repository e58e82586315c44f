/** The thread that owns the SQLite file of the event store. */
import { statSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { orElse, reasonOf } from '../../runtime/error-text.ts';
import { isDamage, movePages, versionOf, withoutSync } from '../../runtime/sqlite.ts';
import { breakAt, describeBreak, LOG_START, type LogEnd, storedCheck } from '../chain.ts';
import { StoreFileUnusable } from '../errors.ts';
import type { StoredForm } from '../port.ts';
import {
  type AppendJob,
  type AppendOutcome,
  appender,
  Failed,
  type Failure,
  failureOf,
  openDatabase,
  openForReading,
  prepareAll,
  type Reads,
  type Reply,
  readsOf,
  type Statements,
  type WorkerOptions,
} from './database.ts';

const TAIL_EVENTS = 100;
const PROBE_PAGES = 8;
// 8 MB: hot pages move once, and a start after a crash stays quick.
const CHECKPOINT_PAGES = 2000;

const port = parentPort;
if (port === null) throw new Error('worker.ts runs as a worker thread only');
const { file, maxPages, readOnly } = workerData as WorkerOptions;
const reply = (message: Reply): void => port.postMessage(message);

async function verifyTail({ storedFrom }: Statements, reads: Reads, end: number): Promise<void> {
  const position = Math.max(0, end - TAIL_EVENTS);
  const { logHash } = position === 0 ? LOG_START : (reads.hashAt(position) ?? {});
  if (logHash === undefined)
    throw new StoreFileUnusable(`the event log is damaged: position ${position} is missing`, true);
  // Not the whole stream: that of the seals grows for ever.
  const before = async ({ stream, revision }: StoredForm) =>
    storedFrom(stream, revision - 2, 1).filter((one) => one.revision === revision - 1);
  const check = storedCheck(before, 'log', { position, logHash });
  for (const form of reads.readAll(position, end, TAIL_EVENTS)) {
    const reason = await check(form);
    if (reason !== undefined)
      throw new StoreFileUnusable(
        `the event log is damaged at ${describeBreak(breakAt(form, reason))}`,
        true,
      );
  }
}

async function open() {
  try {
    const database = readOnly ? openForReading(file) : openDatabase({ file, maxPages });
    const statements = prepareAll(database);
    const end = (statements.end.get() as LogEnd | undefined) ?? LOG_START;
    const reads = readsOf(statements);
    if (!readOnly) await verifyTail(statements, reads, end.position);
    return { database, statements, reads, end };
  } catch (error) {
    const message = `${file}: ${reasonOf(error)}`;
    const isDamaged = isDamage(error) || error instanceof StoreFileUnusable;
    reply({ call: 0, failure: { kind: 'unusable', message, unknown: false, isDamaged } });
    return process.exit();
  }
}

function identityOf(path: string): string | undefined {
  // A double drops the last digits of 64-bit numbers, as overlayfs and FUSE give them.
  const found = orElse(undefined, () => statSync(path, { bigint: true }));
  return found && `${found.dev} ${found.ino}`;
}

const placeOf = (): string => `${identityOf(file)} ${identityOf(`${file}-wal`)}`;

const { database, statements, reads, end } = await open();
const append = appender(database, statements);
const place = placeOf();
let stopped: Failure | undefined;
let diskFull = false;

/** In a moved file SQLite goes on, and its commits are lost. Throws Failed. */
function requireInPlace(): void {
  if (placeOf() === place) return;
  const message = `${file} or its -wal was moved, deleted or replaced while it was open`;
  throw new Failed({ kind: 'fatal', message, unknown: true });
}

/**
 * Between two groups, after the replies: SQLite's own checkpoint inside a commit would hide a
 * failed fsync, after which the log, the only copy, is written over. Throws SQLite's errors.
 */
function checkpoint(): void {
  if (stopped !== undefined) return;
  // A full disk may only need the pages of the log to be written over.
  if (!diskFull && statements.pagesToMove() < CHECKPOINT_PAGES) return;
  diskFull = false;
  movePages(database);
}

/**
 * As many pages as a payment takes: with room for one alone the disk would be ready and reject the
 * next append; many more would take a small disk's room. Stores nothing, so it need not be durable.
 */
function writePages(): void {
  const write = `PRAGMA user_version = ${versionOf(database)}`;
  withoutSync(database, () => {
    for (let pages = 0; pages < PROBE_PAGES; pages += 1) database.exec(write);
  });
}

function requireWritable(): void {
  if (stopped !== undefined) throw new Failed(stopped);
}

const handlers = {
  ...reads,
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
  probe(): void {
    requireWritable();
    writePages();
  },
  close: () => database.close(),
};
export type Handlers = typeof handlers;

type Request = { call: number; name: keyof Handlers; args: unknown[] };

function handle({ call, name, args }: Request): void {
  const work = handlers[name] as (...args: unknown[]) => unknown;
  attempt(call, () => reply({ call, value: work(...args) }));
  if (name === 'append' || name === 'probe') attempt(-1, checkpoint);
  if (name === 'close') port?.close();
}

const unforeseen = (error: unknown): Failure => {
  const failure = failureOf(error, false);
  return readOnly ? { ...failure, kind: 'unusable' } : failure;
};

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
