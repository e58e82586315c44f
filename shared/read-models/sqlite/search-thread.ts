/**
 * Searches of the read models' file, and its checkpoints, in a thread with other connections: however many
 * payments a search looks at, no request waits for it (ADR-0185).
 */
import { resultOf, type ScanOrder } from '../../runtime/scan.ts';
import { createScanThread, type ScanThread, withScanThread } from '../../runtime/scan-thread.ts';
import { ReadModelsUnavailable } from '../errors.ts';
import type { PaymentSearch, PaymentSearchPage, ReadModelsChecksum } from '../port.ts';
import { CHECKPOINT_SCAN } from './checkpoints.ts';
import { CHECKSUM_SCAN } from './checksum-scan.ts';
import type { SqliteReadModelsOptions } from './connection.ts';
import { INDEX_SCAN } from './index-scan.ts';
import type { SearchArgs } from './search-scan.ts';

const MODULE = new URL('./search-scan.ts', import.meta.url).href;

/** The searches of one file. */
export type Searches = {
  /**
   * A page of a search, of everything that was committed before the call. Throws SQLite's errors, and
   * ReadModelsUnavailable where the thread is gone.
   */
  search(search: PaymentSearch, limit: number): Promise<PaymentSearchPage>;
  /** The checksum of everything that was committed before the call. Throws as `search`. */
  checksum(): Promise<ReadModelsChecksum>;
  /** Moves the write-ahead log into the file (checkpoints.ts). Throws as `search`. */
  moveLog(): Promise<void>;
  /** See `indexDamage` of the port. Throws as `search`. */
  indexDamage(signal?: AbortSignal): Promise<string | undefined>;
  /**
   * Runs a step that puts another file in the place of this one: after the searches under way, and
   * before those that come meanwhile.
   */
  whileClosed(step: () => void): Promise<void>;
  /** Closes the file; a search under way throws. The next search opens the file that is there then. */
  close(): Promise<void>;
};

/** A rebuild makes both checksums at once, and requests go on beside them. */
const CHECKSUM_LOWERED_BY = 3;
/** No request waits for a look at the indexes. */
const INDEXES_LOWERED_BY = 10;

/** One thread for searches of all files of this process: it takes 0.1 s to start. */
const thread = createScanThread();

const ended = (error: Error): never => {
  throw error.name === 'ScanThreadEnded' ? new ReadModelsUnavailable(error.message) : error;
};

/** Searches of the file that the options name; nothing is opened before the first. */
export const createSearches = ({
  file,
  secrets,
  searchBounds: bounds,
}: SqliteReadModelsOptions): Searches => {
  const running = new Set<Promise<unknown>>();
  let replacing: Promise<void> = Promise.resolve();
  let isOpen = false;
  const reading = new Set<ScanThread>();

  const inThread = (wanted?: SearchArgs['wanted']) => {
    isOpen = wanted !== undefined;
    const args: SearchArgs = { file, secrets, ...(wanted && { wanted }) };
    return resultOf(thread.run<never, PaymentSearchPage>({ module: MODULE, args }));
  };
  const close = async (): Promise<void> => {
    // A thread that is gone has closed the file with it.
    if (isOpen) await inThread().catch(() => undefined);
  };

  /** Two files are compared at once, and searches go on beside it. */
  const inOwnThread = <R>(loweredBy: number, order: ScanOrder): Promise<R> =>
    withScanThread(loweredBy, async (own) => {
      reading.add(own);
      try {
        return await resultOf(own.run<never, R>(order));
      } finally {
        reading.delete(own);
      }
    });

  const whileOpen = async <T>(order: () => Promise<T>): Promise<T> => {
    await replacing;
    const result = order();
    running.add(result);
    return result.catch(ended).finally(() => running.delete(result));
  };

  return {
    search: (search, limit) => whileOpen(() => inThread({ search, limit, bounds })),
    checksum: () =>
      whileOpen(() => inOwnThread(CHECKSUM_LOWERED_BY, { module: CHECKSUM_SCAN, args: { file } })),
    moveLog: () =>
      whileOpen(() =>
        resultOf(thread.run<never, void>({ module: CHECKPOINT_SCAN, args: { file } })),
      ),
    indexDamage: (signal) =>
      whileOpen(() =>
        inOwnThread(INDEXES_LOWERED_BY, { module: INDEX_SCAN, args: { file }, signal }),
      ),
    whileClosed: (step) => {
      const replaced = replacing.then(async () => {
        await Promise.allSettled(running);
        await close();
        step();
      });
      replacing = replaced.catch(() => undefined);
      return replaced;
    },
    close: async () => {
      await Promise.all([close(), ...[...reading].map((own) => own.end())]);
    },
  };
};
