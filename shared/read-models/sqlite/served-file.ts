/**
 * The read models' file while it is served; only a rebuild puts another in its place (ADR-0042). Threads
 * search it, sum it up and move its write-ahead log, each by a connection of its own (ADR-0185).
 */
import { close, existsSync, openSync, renameSync, statSync } from 'node:fs';
import { firstLineOf, orElse } from '../../runtime/error-text.ts';
import { type Job, type JobThread, resultOf } from '../../runtime/jobs.ts';
import { codeOf, moveAllPages } from '../../runtime/sqlite.ts';
import { ReadModelsLost, ReadModelsUnavailable } from '../errors.ts';
import type { PaymentSearch } from '../port.ts';
import {
  type Connection,
  isUnusable,
  openConnection,
  removeLog,
  type SqliteReadModelsOptions,
  unavailable,
} from './connection.ts';
import { checksumFile, moveLog, searchFile } from './scans.ts';

/** Keeps the file that a rename takes away: freeing the blocks of a large one takes 0.1 s. */
const keepOpen = (file: string): (() => void) => {
  const held = orElse(undefined, () => openSync(file, 'r'));
  return () => held && close(held, () => undefined);
};

/** Throws ReadModelsUnavailable where a part of the closed file is in its write-ahead log alone. */
const requireWhole = (file: string): void => {
  const log = statSync(`${file}-wal`, { throwIfNoEntry: false });
  if (log !== undefined && log.size > 0)
    throw new ReadModelsUnavailable(
      'the write-ahead log of the read models is not in their file: the disk is full, or another process reads them',
    );
};

const SQLITE_CANTOPEN = 14;

/** A rebuild makes both checksums at once, and requests go on beside them. */
const CHECKSUM_LOWERED_BY = 3;

/** 8 MB: a longer log keeps a batch waiting for longer, of a shorter one more pages are moved twice. */
const DUE_AT_PAGES = 2_000;

type Listeners = {
  /** Another program has damaged or deleted the file. */
  onLost(reason: string): void;
  /** Another file has taken the place. */
  onReplaced(): void;
};

export const openServedFile = (
  options: SqliteReadModelsOptions,
  { onLost, onReplaced }: Listeners,
) => {
  const { file, secrets, searchBounds: bounds, newThread } = options;
  const searching = newThread();
  const summing = newThread(CHECKSUM_LOWERED_BY);
  const underWay = new Set<Promise<unknown>>();
  let at = openConnection(options);
  let closed = false;
  let replacing: Promise<void> = Promise.resolve();
  let moving: Promise<void> | undefined;

  /** The disk may have been full, or no file descriptor left, when another file took the place. */
  const opened = (): Connection => {
    if (!closed && !at.db.isOpen) at = openConnection(options);
    return at;
  };

  /** The port's error for one of the file, here or in a thread; tells of a file that is lost. */
  const failed = (error: unknown): unknown => {
    const { name, message } = Object(error);
    if (name === 'ThreadEnded') return new ReadModelsUnavailable(message);
    const isGone = codeOf(error) % 256 === SQLITE_CANTOPEN && !existsSync(file);
    if (!isUnusable(error) && !isGone) return unavailable(error);
    const reason = firstLineOf(error);
    onLost(reason);
    return new ReadModelsLost(`the file of the read models is damaged or gone: ${reason}`);
  };

  /** Throws ReadModelsUnavailable where the file cannot be used. */
  const run = <T>(step: (at: Connection) => T): T => {
    try {
      return step(opened());
    } catch (error) {
      throw failed(error);
    }
  };

  /** Sees everything that was committed before it. Throws SQLite's errors, and ThreadEnded. */
  const inThread = async <A, R>(thread: JobThread, job: Job<A, never, R>, args: A): Promise<R> => {
    await replacing;
    const result = resultOf(thread.run(job, args, { calls: {} }));
    underWay.add(result);
    return result.finally(() => underWay.delete(result));
  };

  const read = async <T>(step: () => Promise<T>): Promise<T> => {
    if (closed) throw new ReadModelsUnavailable('the read models are closed');
    return step().catch((error: unknown) => {
      throw failed(error);
    });
  };

  const endThreads = () => Promise.all([searching.end(), summing.end()]);

  /** In one turn of the event loop, so that no reader finds the file missing. */
  const replace = (next: string): void => {
    let letGo = (): void => undefined;
    try {
      requireWhole(next);
      // The close alone moves the log only where no other process has the file open. No wait for readers.
      moveAllPages(at.db);
      at.db.close();
      requireWhole(file);
      letGo = keepOpen(file);
      // A crash leaves the old file or the new one, each of them whole.
      renameSync(next, file);
      // The log of the old file, which another process keeps there, would be laid over the new one.
      removeLog(file);
    } finally {
      if (at.db.isOpen) at.db.close();
      onReplaced();
      at = openConnection(options);
      letGo();
    }
  };

  return {
    run,
    failed,
    /** They throw ReadModelsUnavailable. */
    search: (search: PaymentSearch, limit: number) =>
      read(() => inThread(searching, searchFile, { file, secrets, search, limit, bounds })),
    checksum: () => read(() => inThread(summing, checksumFile, { file })),
    /** A batch waits for it: only a log that was moved to its end is written from its start again. */
    logMoved: (): Promise<void> | undefined => moving,
    /**
     * Begins to move the write-ahead log where that is due. SQLite would do it inside a commit on the event
     * loop, where every request would wait for the disk.
     */
    moveLogWhenDue: ({ pagesToMove }: Connection): void => {
      if (moving !== undefined || pagesToMove() < DUE_AT_PAGES) return;
      moving = inThread(searching, moveLog, { file })
        // Without a thread, or on a full disk, the log grows until SQLite moves it inside a commit.
        .catch(() => undefined)
        .finally(() => {
          moving = undefined;
        });
    },
    /**
     * After the searches under way, before those that come meanwhile. Throws ReadModelsUnavailable, also where
     * the new file cannot be opened: the next step opens it.
     */
    replaceBy: (next: string): Promise<void> => {
      const replaced = replacing.then(async () => {
        await Promise.allSettled(underWay);
        await endThreads();
        run(() => replace(next));
      });
      replacing = replaced.catch(() => undefined);
      return replaced;
    },
    isOpen: (): boolean => !closed,
    /** A search under way throws. */
    close: async (): Promise<void> => {
      await Promise.all([endThreads(), moving]);
      closed = true;
      if (at.db.isOpen) at.db.close();
    },
  };
};
export type ServedFile = ReturnType<typeof openServedFile>;
