/** A thread owns the file, so that a slow disk stalls nothing; no other process may write it. */
import type { Logger } from '../../runtime/log.ts';
import { ensurePrivateFile } from '../../runtime/private-files.ts';
import { createScanThread } from '../../runtime/scan.ts';
import { StoreFileUnusable, StoreUnavailable } from '../errors.ts';
import type { EventStore, FileFault, Position } from '../port.ts';
import { checkFile, watchDamage } from './file-check.ts';
import { groupCommit, startThread, type Thread } from './group-commit.ts';
import {
  type Call,
  follow,
  type LiveTail,
  type LogFile,
  liveTail,
  overFile,
  positionNumber,
  readerOf,
} from './log-reader.ts';

export type SqliteEventStoreOptions = {
  /** Made with mode 0600. */
  file: string;
  logger?: Pick<Logger, 'warn' | 'error'>;
  /** Called once, when this process can never write again: it should exit. */
  onFatal?: (error: Error) => void;
  /** In pages, for tests of a full disk. */
  maxPages?: number;
};

const SCANS_LOWERED_BY = 10;

export type SqliteEventStore = EventStore & {
  lastPosition(): Position | null;
  /** Transactions with an append, since the start. */
  commits(): number;
  /** Throws StoreUnavailable where the store takes no events; after a failed append it writes. */
  ping(): Promise<void>;
};

/** Verifies the end of the hash chain. Throws StoreFileUnusable with one line for the operator. */
export async function openSqliteEventStore(
  options: SqliteEventStoreOptions,
): Promise<SqliteEventStore> {
  const { file, maxPages, onFatal, logger } = options;
  createPrivateFile(file);
  const from = { file, isLive: true };
  const { met, onDamage } = watchDamage(logger);
  const thread = await startThread(
    { file, maxPages },
    ({ message, isDamaged }) =>
      onFatal?.(
        new StoreFileUnusable(message.includes(file) ? message : `${file}: ${message}`, isDamaged),
      ),
    met,
  );
  const tail = liveTail(thread.openedAt);
  const { append, done, ping, ...commits } = groupCommit(thread, tail, logger);
  const { subscribe, close, stored, ...reads } = readers(thread, tail, from);
  const closing = new AbortController();
  let closed: Promise<void> | undefined;
  let faults: readonly FileFault[] = [];
  const rejectFaulty = (stream: string): void => {
    const fault = faults.find((one) => one.stream === stream || one.stream === '');
    if (fault !== undefined) throw new StoreFileUnusable(`nothing is appended: ${fault.reason}`);
  };

  return {
    ...reads,
    ...commits,
    append: async (...batch) => {
      if (closed !== undefined) throw new StoreUnavailable('the event store is closed');
      rejectFaulty(batch[0]);
      return append(...batch);
    },
    ping: async () => {
      rejectFaulty('');
      await ping();
    },
    stored: {
      ...stored,
      checkFile: async (signal) => {
        const found = await checkFile(from, AbortSignal.any([signal, closing.signal]));
        faults = found;
        return found;
      },
      onDamage,
    },
    subscribe: (after, signal, types) =>
      subscribe(after, AbortSignal.any([signal, closing.signal]), types),
    lastPosition: () => lastOf(tail),
    close() {
      closing.abort();
      closed ??= done().then(close);
      return closed;
    },
  };
}

/**
 * For a file that no process writes: `file:///…?immutable=1` or a copy's path. An append throws
 * StoreUnavailable, a damaged part StoreFileUnusable; `claimMeta` stores nothing.
 */
export async function openSqliteForReading(file: string): Promise<EventStore> {
  const thread = await startThread({ file, readOnly: true });
  return {
    ...readers(thread, liveTail(thread.openedAt), { file, isLive: false }),
    append: () => Promise.reject(new StoreUnavailable('the log was opened for reading')),
  };
}

function createPrivateFile(file: string): void {
  try {
    ensurePrivateFile(file);
  } catch (error) {
    throw new StoreFileUnusable(`${file}: ${(error as Error).message}`);
  }
}

const lastOf = (tail: LiveTail): Position | null =>
  tail.last() === 0 ? null : String(tail.last());

function readers({ call }: Thread, tail: LiveTail, from: LogFile): Omit<EventStore, 'append'> {
  const scans = createScanThread({ priorityLoweredBy: SCANS_LOWERED_BY });
  const reader = readerOf(call as Call);
  const { readAll, stored } = reader;

  return {
    ...reader,
    stored: {
      ...stored,
      scan: (order) => scans.run(overFile(from, order)),
      checkFile: (signal) => checkFile(from, signal),
    },
    end: async () => lastOf(tail),
    positionOf: (text) => {
      const number = positionNumber(text);
      if (number === 0) throw new RangeError('the first event has position 1');
      return String(number);
    },
    head: async (after) => {
      const first = positionNumber(after);
      const eventsAfter = Math.max(0, tail.last() - first);
      const oldestAfter = eventsAfter === 0 ? null : await call('timeAfter', first);
      return { position: lastOf(tail), eventsAfter, isExact: true, oldestAfter };
    },
    subscribe: (after, signal, types) => follow(tail, readAll, after, signal, types),
    claimMeta: (key, value) => call('claimMeta', key, value),
    close: async () => {
      // The last to close the file moves its write-ahead log: a reader could not.
      await scans.end();
      // A file that was not closed cleanly loses nothing, as after a crash.
      await call('close').catch(() => undefined);
    },
  };
}
