/** A thread owns the file, so that a slow disk stalls nothing; no other process may write it. */
import { ensurePrivateFile } from '../../runtime/private-files.ts';
import { createScanThread } from '../../runtime/scan.ts';
import { StoreFileUnusable, StoreUnavailable } from '../errors.ts';
import type { EventStore, Position } from '../port.ts';
import type { Reads } from './database.ts';
import {
  groupCommit,
  rethrow,
  type SqliteEventStoreStats,
  startThread,
  type Thread,
} from './group-commit.ts';
import {
  type Call,
  follow,
  type LiveTail,
  type LogFile,
  liveTail,
  ofTypes,
  overFile,
  positionNumber,
  readerOf,
} from './log-reader.ts';

export type SqliteEventStoreOptions = {
  /** Made with mode 0600. */
  file: string;
  logger?: { warn(details: object, message: string): void };
  /** Called once, when this process can never write again: it should exit. */
  onFatal?: (error: Error) => void;
  /** In pages, for tests of a full disk. */
  maxPages?: number;
};

const SCANS_LOWERED_BY = 10;

export type SqliteEventStore = EventStore & {
  lastPosition(): Position | null;
  stats(): SqliteEventStoreStats;
  /** Throws StoreUnavailable where the store takes no events; after a failed append it writes. */
  ping(): Promise<void>;
};

/** Verifies the end of the hash chain. Throws StoreFileUnusable with one line for the operator. */
export async function openSqliteEventStore(
  options: SqliteEventStoreOptions,
): Promise<SqliteEventStore> {
  const { file, maxPages, onFatal } = options;
  createPrivateFile(file);
  const thread = await startThread({ file, maxPages }, ({ message }) =>
    onFatal?.(new StoreFileUnusable(message.includes(file) ? message : `${file}: ${message}`)),
  ).catch(rethrow);
  const tail = liveTail(thread.openedAt);
  const appends = groupCommit(thread, tail, options.logger);
  const { subscribe, close, ...reads } = readers(thread, tail, { file, isLive: true });
  const closing = new AbortController();
  let closed: Promise<void> | undefined;

  return {
    ...reads,
    append: (stream, expected, events) =>
      closed === undefined
        ? appends.append(stream, expected, events)
        : Promise.reject(new StoreUnavailable('the event store is closed')),
    subscribe: (after, signal, types) =>
      subscribe(after, AbortSignal.any([signal, closing.signal]), types),
    lastPosition: () => lastOf(tail),
    stats: () => ({ ...appends.counters }),
    ping: appends.ping,
    close() {
      closing.abort();
      closed ??= appends.done().then(close);
      return closed;
    },
  };
}

/**
 * For a file that no process writes: `file:///…?immutable=1` or a copy's path. An append throws
 * StoreUnavailable, a damaged part StoreFileUnusable; `claimMeta` stores nothing.
 */
export async function openSqliteForReading(file: string): Promise<EventStore> {
  const thread = await startThread({ file, readOnly: true }, () => undefined).catch(rethrow);
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

function readers(thread: Thread, tail: LiveTail, from: LogFile): Omit<EventStore, 'append'> {
  const scans = createScanThread({ priorityLoweredBy: SCANS_LOWERED_BY });
  const call = (name: keyof Reads, ...args: never) => thread.call(name, ...args).catch(rethrow);
  const reader = readerOf(call as Call);
  const { readAll, stored } = reader;

  return {
    ...reader,
    stored: { ...stored, scan: (order) => scans.run(overFile(from, order)) },
    end: async () => lastOf(tail),
    positionOf: (text) => {
      const number = positionNumber(text);
      if (number === 0) throw new RangeError('the first event has position 1');
      return String(number);
    },
    head: async (after) => {
      const first = positionNumber(after);
      const last = tail.last();
      const position = lastOf(tail);
      if (first >= last) return { position, eventsAfter: 0, isExact: true, oldestAfter: null };
      const next = tail.after(first, 1)?.[0]?.time;
      const oldestAfter = next ?? (await thread.call('timeAfter', first).catch(rethrow));
      return { position, eventsAfter: last - first, isExact: true, oldestAfter };
    },
    subscribe: (after, signal, types) => ofTypes(follow(tail, readAll, after, signal), types),
    claimMeta: (key, value) => thread.call('claimMeta', key, value).catch(rethrow),
    close: async () => {
      // The last to close the file moves its write-ahead log: a reader could not.
      await scans.end();
      // A file that was not closed cleanly loses nothing, as after a crash.
      await thread.call('close').catch(() => undefined);
    },
  };
}
