/**
 * The open SQLite file: an empty one replaces an unusable one, a rebuild puts another in its place (ADR-0042),
 * and threads search it, sum it up and move its write-ahead log by their own connections (ADR-0185).
 */
import { close, existsSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { firstLineOf } from '../../runtime/error-text.ts';
import { type Job, type JobThread, type NewThread, resultOf } from '../../runtime/jobs.ts';
import { codeOf, isDamage, moveAllPages } from '../../runtime/sqlite.ts';
import { ReadModelsLost, ReadModelsUnavailable } from '../errors.ts';
import type { PaymentSearch } from '../port.ts';
import { checksumFile, moveLog, searchFile } from './file-jobs.ts';
import {
  type ConnectOptions,
  connectToWrite,
  type FileConnection,
  UnusableFile,
} from './schema.ts';
import type { SearchBounds } from './search.ts';

const SQLITE_ERROR = 1;

export type SqliteReadModelsOptions = ConnectOptions & {
  newThread: NewThread;
  searchBounds?: SearchBounds;
  logger?: { warn(fields: object, message: string): void };
};

const removeLog = (file: string): void => {
  for (const suffix of ['-wal', '-shm']) rmSync(file + suffix, { force: true });
};
export const removeFile = (file: string): void => {
  rmSync(file, { force: true });
  removeLog(file);
};

/** An error of damage, or of a table or column that is missing. */
const isUnusable = (error: unknown): boolean =>
  isDamage(error) || codeOf(error) % 256 === SQLITE_ERROR;

/** Opens the file, or an empty one in its place. Throws ReadModelsUnavailable. */
const openConnection = (options: SqliteReadModelsOptions): FileConnection => {
  const { file, logger } = options;
  try {
    return connectToWrite(options);
  } catch (error) {
    if (!(error instanceof UnusableFile || isUnusable(error))) throw fileUnavailable(error);
    logger?.warn(
      { file, reason: firstLineOf(error) },
      error instanceof UnusableFile
        ? 'read models are filled anew from the event log, as after each upgrade; nothing is lost'
        : 'read models thrown away: the file is damaged; they are filled anew from the event log',
    );
    try {
      removeFile(file);
      return connectToWrite(options);
    } catch (again) {
      throw fileUnavailable(again);
    }
  }
};

/** The codes of a file that cannot be opened or made: of SQLite, of the file system, and of its limits. */
const OF_THE_FILE = [
  ...['ERR_SQLITE_ERROR', 'ERR_INVALID_STATE', 'EACCES', 'EROFS', 'ENOENT', 'EPERM'],
  ...['EMFILE', 'ENFILE', 'ENOSPC', 'EDQUOT'],
];

/** ReadModelsUnavailable for an error of the file, also where it lost its class between threads. */
export const fileUnavailable = (error: unknown): unknown => {
  const { code, message } = Object(error) as { code?: string; message: string };
  if (code === 'READ_MODELS_UNAVAILABLE' && !(error instanceof ReadModelsUnavailable))
    return new ReadModelsUnavailable(message);
  if (code === undefined || !OF_THE_FILE.includes(code)) return error;
  return new ReadModelsUnavailable(
    `the file of the read models cannot be used: ${firstLineOf(error)}`,
    { cause: error },
  );
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

/** A rebuild makes both checksums at once, and requests go on next to them. */
const CHECKSUM_LOWERED_BY = 3;

/** 8 MB: a longer log keeps a batch waiting for longer, of a shorter one more pages are moved twice. */
const DUE_AT_PAGES = 2_000;

/** In one turn of the event loop, so that no reader finds the file missing. */
const takePlace = ({ db }: FileConnection, file: string, next: string): void => {
  requireWhole(next);
  // The close alone moves the log only where no other process has the file open. No wait for readers.
  moveAllPages(db);
  db.close();
  requireWhole(file);
  // Its last close frees the blocks of a large file in 0.1 s, off the event loop.
  const held = openSync(file, 'a');
  try {
    // A crash leaves the old file or the new one, each of them whole.
    renameSync(next, file);
    // The log of the old file, which another process keeps there, would be laid over the new one.
    removeLog(file);
  } finally {
    close(held, () => undefined);
  }
};

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
  const opened = (): FileConnection => {
    if (!closed && !at.db.isOpen) at = openConnection(options);
    return at;
  };

  /** The port's error for one of the file, here or in a thread; tells of a file that is lost. */
  const failed = (error: unknown): unknown => {
    const { name, message } = Object(error);
    if (name === 'ThreadEnded') return new ReadModelsUnavailable(message);
    const isGone = codeOf(error) % 256 === SQLITE_CANTOPEN && !existsSync(file);
    if (!isUnusable(error) && !isGone) return fileUnavailable(error);
    const reason = firstLineOf(error);
    onLost(reason);
    return new ReadModelsLost(`the file of the read models is damaged or gone: ${reason}`);
  };

  const run = <T>(step: (at: FileConnection) => T): T => {
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

  const letGo = async (): Promise<void> => {
    await Promise.all([endThreads(), moving]);
    if (at.db.isOpen) at.db.close();
  };

  const replace = (next: string): void => {
    try {
      takePlace(at, file, next);
    } finally {
      if (at.db.isOpen) at.db.close();
      onReplaced();
      at = openConnection(options);
    }
  };

  return {
    run,
    read,
    search: (search: PaymentSearch, limit: number) =>
      read(() => inThread(searching, searchFile, { file, secrets, search, limit, bounds })),
    checksum: () => read(() => inThread(summing, checksumFile, { file })),
    /** A batch waits for it: only a log that was moved to its end is written from its start again. */
    logMoved: (): Promise<void> | undefined => moving,
    /** Moves the log when due: SQLite would do it in a commit, and every request would wait for the disk. */
    moveLogWhenDue: ({ pagesToMove }: FileConnection): void => {
      if (moving !== undefined || pagesToMove() < DUE_AT_PAGES) return;
      moving = inThread(searching, moveLog, { file })
        // Without a thread, or on a full disk, the log grows until SQLite moves it inside a commit.
        .catch(() => undefined)
        .finally(() => {
          moving = undefined;
        });
    },
    /** After searches under way, before later ones. Throws ReadModelsUnavailable; the next step opens it. */
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
    /** The next step opens the file again. A search under way throws. */
    letGo,
    close: async (): Promise<void> => {
      await letGo();
      closed = true;
    },
  };
};
export type ServedFile = ReturnType<typeof openServedFile>;
