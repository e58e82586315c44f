/** A thread owns the file, so that a slow disk stalls nothing; no other process may write it. */
import type { NewThread } from '../../runtime/jobs.ts';
import type { Logger } from '../../runtime/log.ts';
import { type AppendMetrics, StoreFileUnusable, StoreUnavailable } from '../errors.ts';
import type { EventStore, Position } from '../port.ts';
import { checkFile, watchDamage } from './file-check.ts';
import { groupCommit, startWriter } from './group-commit.ts';
import {
  followFile,
  type LiveTail,
  liveAddress,
  liveTail,
  openLog,
  overLog,
  positionNumber,
  positionOf,
  readerOf,
  type WriterCall,
} from './log-reader.ts';

export type SqliteEventStoreOptions = {
  /** Made with mode 0600. */
  file: string;
  logger?: Pick<Logger, 'warn' | 'error'>;
  /** For jobs over the log; without it they run in the calling thread. */
  newThread?: NewThread | undefined;
  /** Called once, when this process can never write again: it should exit. */
  onFatal?: (error: Error) => void;
  metrics?: AppendMetrics;
  maxPages?: number;
};

const SCANS_LOWERED_BY = 10;

export type SqliteEventStore = EventStore & {
  lastPosition(): Position | null;
  /** Throws StoreUnavailable where the store takes no events; after a failed append it writes. */
  ping(): Promise<void>;
};

/** Verifies the end of the hash chain. Throws StoreFileUnusable with one line for the operator. */
export async function openSqliteEventStore(
  options: SqliteEventStoreOptions,
): Promise<SqliteEventStore> {
  const { file, maxPages, onFatal, logger, newThread } = options;
  const { met, onDamage } = watchDamage(logger);
  const writer = await startWriter(
    { file, maxPages },
    ({ message, isDamaged }) =>
      onFatal?.(
        new StoreFileUnusable(message.includes(file) ? message : `${file}: ${message}`, isDamaged),
      ),
    met,
  );
  const tail = liveTail(writer.openedAt);
  const { append, noteFaults, close, ping } = groupCommit(writer, tail, options);
  const { subscribe, stored, ...reads } = readers(writer.call, tail);
  const scans = newThread?.(SCANS_LOWERED_BY);
  const closing = new AbortController();
  let closed: Promise<void> | undefined;

  return {
    ...reads,
    append,
    ping,
    stored: {
      ...stored,
      ...(scans && {
        scan: (job, args, given) => scans.run(overLog(job), { file, args }, given),
      }),
      checkFile: async (signal) => {
        const either = AbortSignal.any([signal, closing.signal]);
        const found = await checkFile(liveAddress(file), either);
        noteFaults(found);
        return found;
      },
      onDamage,
    },
    subscribe: (after, signal, types) =>
      subscribe(after, AbortSignal.any([signal, closing.signal]), types),
    claimMeta: (key, value) => writer.call('claimMeta', key, value),
    lastPosition: () => positionOf(tail.last()),
    close() {
      closing.abort();
      closed ??= close().then(async () => {
        // The last to close the file moves its write-ahead log: a reader could not.
        await scans?.end();
        await writer.close();
      });
      return closed;
    },
  };
}

/**
 * Reads, in the calling thread, a file that no process writes: `file:///…?immutable=1` or a copy's path. An
 * append throws StoreUnavailable, a damaged part StoreFileUnusable; `claimMeta` stores nothing.
 */
export async function openSqliteForReading(file: string): Promise<EventStore> {
  const { call, close } = openLog(file, false);
  const { stored, ...reads } = readers(call, liveTail(await call('end')));
  return {
    ...reads,
    stored: { ...stored, checkFile: (signal) => checkFile(file, signal) },
    append: () => Promise.reject(new StoreUnavailable('the log was opened for reading')),
    claimMeta: async (key, value) => (await call('getMeta', key)) ?? value,
    close: async () => close(),
  };
}

const readers = (call: WriterCall, tail: LiveTail) => {
  const reader = readerOf(call);
  const { readAll } = reader;
  return {
    ...reader,
    end: async () => positionOf(tail.last()),
    positionOf: (text) => {
      const number = positionNumber(text);
      if (number === 0) throw new RangeError('the first event has position 1');
      return String(number);
    },
    head: async (after) => {
      const first = positionNumber(after);
      const eventsAfter = Math.max(0, tail.last() - first);
      const oldestAfter = eventsAfter === 0 ? null : await call('timeFrom', first + 1);
      return { position: positionOf(tail.last()), eventsAfter, isExact: true, oldestAfter };
    },
    subscribe: (after, signal, types) => followFile(tail, readAll, after, signal, types),
  } satisfies Partial<EventStore>;
};
