/** The thread that owns the SQLite file of the event store. */
import { statSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { workerData } from 'node:worker_threads';
import { reasonOf } from '../../runtime/error-text.ts';
import { serveCalls } from '../../runtime/jobs.ts';
import { ensurePrivateFile } from '../../runtime/private-files.ts';
import { isDamage, movePages, versionOf, withoutSync } from '../../runtime/sqlite.ts';
import { breakAt, describeBreak, LOG_START, storedCheck } from '../chain.ts';
import { StoreFileUnusable } from '../errors.ts';
import type { StoredForm } from '../port.ts';
import {
  type AppendJob,
  type AppendOutcome,
  appender,
  Failed,
  failedOf,
  openDatabase,
  prepareAll,
  readsOf,
  type Statements,
  type WriterOptions,
} from './database.ts';

const TAIL_EVENTS = 100;
const PROBE_PAGES = 8;
// 8 MB: hot pages move once, and a start after a crash stays quick.
const CHECKPOINT_PAGES = 2000;

async function verifyTail(statements: Statements): Promise<void> {
  const { storedFrom } = statements;
  const reads = readsOf(statements);
  const end = reads.end();
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

function identityOf(path: string): string | undefined {
  // A double drops the last digits of 64-bit numbers, as overlayfs and FUSE give them.
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found && `${found.dev} ${found.ino}`;
}

let stopped: Failed | undefined;
let diskFull = false;

const noted = (error: unknown): Failed => {
  const failed = error instanceof Failed ? error : failedOf(error, false);
  diskFull = failed.kind === 'full';
  if (failed.kind === 'fatal') stopped = new Failed('fatal', failed.message);
  return failed;
};

function requireWritable(): void {
  if (stopped !== undefined) throw stopped;
}

/** Runs between groups: SQLite's checkpoint in a commit hides a failed fsync, then overwrites the only copy. */
function checkpoint(database: DatabaseSync, { pagesToMove }: Statements): void {
  if (stopped !== undefined || !database.isOpen) return;
  try {
    // A full disk may only need the pages of the log to be written over.
    if (!diskFull && pagesToMove() < CHECKPOINT_PAGES) return;
    diskFull = false;
    movePages(database);
  } catch (error) {
    const failed = noted(error);
    // Not within a call: the thread ends with it.
    if (failed.kind === 'fatal') throw failed;
  }
}

/**
 * As many pages as a payment takes: with room for one alone the disk would be ready and reject the
 * next append; many more would take a small disk's room. Stores nothing, so it need not be durable.
 */
function writePages(database: DatabaseSync): void {
  const write = `PRAGMA user_version = ${versionOf(database)}`;
  withoutSync(database, () => {
    for (let pages = 0; pages < PROBE_PAGES; pages += 1) database.exec(write);
  });
}

const writer = (database: DatabaseSync, statements: Statements, requireInPlace: () => void) => {
  const append = appender(database, statements);
  // A microtask runs once the reply is posted.
  const checkpointLater = () => queueMicrotask(() => checkpoint(database, statements));
  return {
    ...readsOf(statements),
    append: (jobs: AppendJob[]): AppendOutcome[] => {
      checkpointLater();
      requireWritable();
      const outcomes = append(jobs);
      requireInPlace();
      return outcomes;
    },
    claimMeta: (key: string, value: string): string => {
      statements.addMeta.run(key, value);
      return String(statements.getMeta.get(key)?.value);
    },
    probe: (): void => {
      checkpointLater();
      requireWritable();
      writePages(database);
    },
    close: () => database.close(),
  };
};
export type Writer = ReturnType<typeof writer>;

const open = async ({ file, maxPages }: WriterOptions): Promise<Writer> => {
  const placeOf = (): string => `${identityOf(file)} ${identityOf(`${file}-wal`)}`;
  try {
    ensurePrivateFile(file);
    const database = openDatabase({ file, maxPages });
    const statements = prepareAll(database);
    await verifyTail(statements);
    const place = placeOf();
    return writer(database, statements, () => {
      if (placeOf() === place) return;
      // In a moved file SQLite goes on, and its commits are lost.
      const message = `${file} or its -wal was moved, deleted or replaced while it was open`;
      throw new Failed('fatal', message, true);
    });
  } catch (error) {
    const isDamaged = isDamage(error) || error instanceof StoreFileUnusable;
    throw new Failed('unusable', `${file}: ${reasonOf(error)}`, false, isDamaged);
  }
};

await serveCalls(open(workerData), noted);
