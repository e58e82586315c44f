/** Work on the served file beside the event loop, in threads of their own (ADR-0185). */
import { createScanThread, resultOf, type ScanOrder, type ScanThread } from '../../runtime/scan.ts';
import { ReadModelsUnavailable } from '../errors.ts';
import type { PaymentSearch, PaymentSearchPage, ReadModelsChecksum } from '../port.ts';
import type { SqliteReadModelsOptions } from './connection.ts';
import type { SearchArgs } from './scans.ts';

const MODULE = new URL('./scans.ts', import.meta.url).href;

/** A rebuild makes both checksums at once, and requests go on beside them. */
const CHECKSUM_LOWERED_BY = 3;

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
  const running = new Set<Promise<unknown>>();
  let replacing: Promise<void> = Promise.resolve();

  const close = async (): Promise<void> => {
    await Promise.all([searching, summing].map((thread) => thread.end()));
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
