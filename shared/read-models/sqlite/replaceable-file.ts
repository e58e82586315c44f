/** The read models' file while running: replaced when damaged or deleted, and after a rebuild. */
import { close, openSync, renameSync, statSync } from 'node:fs';
import { bytesOfReadModel, type PaymentReadModel } from '../../payment/payment-response.ts';
import { createBoundedMap } from '../../runtime/bounded-map.ts';
import { firstLineOf } from '../../runtime/error-text.ts';
import { createScanThread, resultOf, type ScanOrder, type ScanThread } from '../../runtime/scan.ts';
import { isDamage, moveAllPages } from '../../runtime/sqlite.ts';
import { ReadModelsUnavailable } from '../errors.ts';
import type {
  PaymentDocument,
  PaymentSearch,
  PaymentSearchPage,
  ReadModelsChecksum,
} from '../port.ts';
import {
  type Connection,
  openConnection,
  removeFile,
  removeLog,
  type SqliteReadModelsOptions,
  unavailable,
} from './connection.ts';
import type { SearchArgs } from './scans.ts';

/** Some 3 kB each: the next event of most comes within milliseconds or much later (ADR-0112). */
const READ_MODELS_MAX = 128;
const READ_MODELS_BYTES_MAX = 32 * 1024 * 1024;

/** Documents are kept by their bytes: some 22,000 of an ordinary payment. */
const DOCUMENTS_MAX = 65_536;
const DOCUMENTS_BYTES_MAX = 40 * 1024 * 1024;
const ENTRY_BYTES = 250;

/** ASCII, as nearly all bodies are, takes one byte a character, and most others two. */
const bytesOfBody = ({ body }: PaymentDocument): number =>
  Buffer.byteLength(body) === body.length ? body.length : 2 * body.length;

/** By paymentId; neither ever holds what was not committed. */
export const createCaches = () => {
  /** As last written, not serialized, for the next event. */
  const readModels = createBoundedMap<PaymentReadModel>(READ_MODELS_MAX, {
    bytesMax: READ_MODELS_BYTES_MAX,
    bytesOf: bytesOfReadModel,
  });
  /**
   * As last read, with its check verified; forgotten once it is written again. Most documents are never
   * read, and keeping them on each write would cost more than it spares (ADR-0112). None says that it is
   * parked: the file says that in another table.
   */
  const documents = createBoundedMap<PaymentDocument>(DOCUMENTS_MAX, {
    bytesMax: DOCUMENTS_BYTES_MAX,
    bytesOf: (document) => ENTRY_BYTES + bytesOfBody(document),
  });
  return {
    readModels,
    documents,
    written: (readModel: PaymentReadModel): void => {
      const { paymentId } = readModel.response;
      readModels.set(paymentId, readModel);
      documents.delete(paymentId);
    },
    clear: (): void => {
      readModels.clear();
      documents.clear();
    },
  };
};
export type Caches = ReturnType<typeof createCaches>;

/** Keeps the file that a rename takes away: freeing the blocks of a large one takes 0.1 s. */
const keepOpen = (file: string): (() => void) => {
  try {
    const held = openSync(file, 'r');
    return () => close(held, () => undefined);
  } catch {
    return () => undefined;
  }
};

/** Throws ReadModelsUnavailable where a part of the closed file is in its write-ahead log alone. */
const requireWhole = (file: string): void => {
  const log = statSync(`${file}-wal`, { throwIfNoEntry: false });
  if (log !== undefined && log.size > 0)
    throw new ReadModelsUnavailable(
      'the write-ahead log of the read models is not in their file: the disk is full, or another process reads them',
    );
};

/** `onReplaced` is called whenever another file takes its place. */
export const openReplaceableFile = (
  options: SqliteReadModelsOptions,
  { underWay }: Pick<Checkpoints, 'underWay'>,
  onReplaced: () => void,
) => {
  let at = openConnection(options);
  let closed = false;

  /** The disk may have been full, or no file descriptor left, when another file took the place. */
  const opened = (): Connection => {
    if (!closed && !at.db.isOpen) at = openConnection(options);
    return at;
  };

  /** Deleted from outside: this connection still has the file, and those of searches cannot open it. */
  const isDeleted = (): boolean => {
    try {
      return at.db.isOpen && statSync(options.file, { throwIfNoEntry: false }) === undefined;
    } catch {
      return false;
    }
  };

  const replaceLost = (error: unknown): void => {
    options.logger?.warn(
      { file: options.file, reason: firstLineOf(error) },
      'read models are damaged or gone',
    );
    at.db.close();
    onReplaced();
    removeFile(options.file);
    at = openConnection(options);
  };

  /** Throws ReadModelsUnavailable where the file cannot be used; then an empty one replaces it. */
  const run = <T>(step: (at: Connection) => T): T => {
    try {
      return step(opened());
    } catch (error) {
      const isLost = isDamage(error) || isDeleted();
      // A checkpoint could move the log of the new file into the one that is gone: the next step replaces it.
      if (isLost && underWay() === undefined) replaceLost(error);
      throw unavailable(error);
    }
  };

  /** In one turn of the event loop, so that no reader finds the file missing. */
  const replace = (file: string): void => {
    let letGo = (): void => undefined;
    try {
      requireWhole(file);
      // The close alone moves the log only where no other process has the file open. No wait for readers.
      moveAllPages(at.db);
      at.db.close();
      requireWhole(options.file);
      letGo = keepOpen(options.file);
      // A crash leaves the old file or the new one, each of them whole.
      renameSync(file, options.file);
      // The log of the old file, which another process keeps there, would be laid over the new one.
      removeLog(options.file);
    } finally {
      if (at.db.isOpen) at.db.close();
      onReplaced();
      at = openConnection(options);
      letGo();
    }
  };

  return {
    run,
    /** Throws ReadModelsUnavailable, also where the new file cannot be opened: the next step opens it. */
    replaceBy: (file: string): void => run(() => replace(file)),
    isOpen: (): boolean => !closed,
    close: (): void => {
      closed = true;
      if (at.db.isOpen) at.db.close();
    },
  };
};
export type ReplaceableFile = ReturnType<typeof openReplaceableFile>;

const MODULE = new URL('./scans.ts', import.meta.url).href;

/** A rebuild makes both checksums at once, and requests go on beside them. */
const CHECKSUM_LOWERED_BY = 3;
/** No request waits for a look at the indexes. */
const INDEXES_LOWERED_BY = 10;

const ended = (error: Error): never => {
  throw error.name === 'ScanThreadEnded' ? new ReadModelsUnavailable(error.message) : error;
};

/**
 * Over the file that the options name; nothing is opened before the first call. Each sees everything that
 * was committed before it, and throws SQLite's errors, and ReadModelsUnavailable where its thread is gone.
 */
export const createFileThreads = ({
  file,
  secrets,
  searchBounds: bounds,
}: SqliteReadModelsOptions) => {
  const searching = createScanThread();
  const summing = createScanThread({ priorityLoweredBy: CHECKSUM_LOWERED_BY });
  const comparing = createScanThread({ priorityLoweredBy: INDEXES_LOWERED_BY });
  const running = new Set<Promise<unknown>>();
  let replacing: Promise<void> = Promise.resolve();

  const close = async (): Promise<void> => {
    await Promise.all([searching, summing, comparing].map((thread) => thread.end()));
  };

  const run = async <R>(
    thread: ScanThread,
    job: string,
    order: Partial<ScanOrder> = {},
  ): Promise<R> => {
    await replacing;
    const result = resultOf(
      thread.run<never, R>({ module: MODULE, job, args: { file }, ...order }),
    );
    running.add(result);
    return result.catch(ended).finally(() => running.delete(result));
  };

  return {
    search: (search: PaymentSearch, limit: number) => {
      const args: SearchArgs = { file, secrets, search, limit, bounds };
      return run<PaymentSearchPage>(searching, 'search', { args });
    },
    checksum: () => run<ReadModelsChecksum>(summing, 'checksum'),
    /** Moves the write-ahead log into the file. */
    moveLog: () => run<void>(searching, 'moveLog'),
    indexDamage: (signal?: AbortSignal) =>
      run<string | undefined>(comparing, 'indexDamage', { signal }),
    /** Runs a step that replaces the file: after the searches under way, before those that come meanwhile. */
    whileClosed: (step: () => void): Promise<void> => {
      const replaced = replacing.then(async () => {
        await Promise.allSettled(running);
        await close();
        step();
      });
      replacing = replaced.catch(() => undefined);
      return replaced;
    },
    /** A search under way throws. The next one opens the file that is there then. */
    close,
  };
};

export type FileThreads = ReturnType<typeof createFileThreads>;

/** 8 MB: a longer log keeps a batch waiting for longer, of a shorter one more pages are moved twice. */
const DUE_AT_PAGES = 2_000;

/**
 * Moves the write-ahead log into the served file; `move` orders that of a thread. SQLite would do it inside
 * a commit on the event loop, where every request would wait for the disk.
 */
export const createCheckpoints = (move: () => Promise<void>) => {
  let underWay: Promise<void> | undefined;
  return {
    /** A batch waits for it: only a log that was moved to its end is written from its start again. */
    underWay: (): Promise<void> | undefined => underWay,
    /** Begins a checkpoint where one is due. */
    afterCommit({ pagesToMove }: { pagesToMove(): number }): void {
      if (underWay !== undefined || pagesToMove() < DUE_AT_PAGES) return;
      underWay = move()
        // Without a thread, or on a full disk, the log grows until SQLite moves it inside a commit.
        .catch(() => undefined)
        .finally(() => {
          underWay = undefined;
        });
    },
  };
};

export type Checkpoints = ReturnType<typeof createCheckpoints>;
