/**
 * The event store in one SQLite file: the main-thread half. It encodes, groups appends and serves
 * live subscribers from memory; a worker thread owns the file (worker.ts), so that a slow disk never
 * stalls the event loop.
 *
 * This process must be the only one that writes the file.
 */
import { ensurePrivateFile } from '../../runtime/private-files.ts';
import { createScanThread } from '../../runtime/scan-thread.ts';
import { mapInSlices } from '../../runtime/slices.ts';
import { StoreFileUnusable, StoreUnavailable } from '../errors.ts';
import { ofTypes } from '../of-types.ts';
import type { EventStore, Head, Position, StoredForms } from '../port.ts';
import { wholeStream } from '../whole-stream.ts';
import { groupCommit, type SqliteEventStoreStats } from './group-commit.ts';
import { follow, type LiveTail, liveTail, positionNumber } from './live-tail.ts';
import { overFile } from './log-reader.ts';
import { decodeRow, formOf, pageArgs, rethrow } from './rows.ts';
import { startThread, type Thread } from './thread.ts';

/** Where the file is, and who is informed of its troubles. */
export type SqliteEventStoreOptions = {
  /** The path of the database file; made with mode 0600 when it is not there. */
  file: string;
  /** Gets a line when the file takes no events, and one when it takes them again. */
  logger?: { warn(details: object, message: string): void };
  /** Called once, when this process can never write to the file again: it should exit. */
  onFatal?: (error: Error) => void;
  /** For tests that need a full disk: the size in pages that the file cannot grow over. */
  maxPages?: number;
};

/** No request waits for a scan of the log. */
const SCANS_LOWERED_BY = 10;

/** The port, and what health, the banner and the metrics ask of this driver. */
export type SqliteEventStore = EventStore & {
  /** The last position of the log now, or null when it is empty. */
  lastPosition(): Position | null;
  stats(): SqliteEventStoreStats;
  /**
   * Resolves where the store takes events now. After an append that the file did not take it tries a
   * write: a process that reports itself not ready may get no append that would try. Throws StoreUnavailable.
   */
  ping(): Promise<void>;
};

/**
 * Opens the store, making or migrating the file, and verifies the end of its hash chain.
 * Throws StoreFileUnusable with one line for the operator when the file cannot be used: not
 * writable, damaged (the line names position, stream and revision), written by a newer version.
 */
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
  const reads = readers(thread, tail);
  const scans = createScanThread({ priorityLoweredBy: SCANS_LOWERED_BY });
  const closing = new AbortController();
  let closed: Promise<void> | undefined;

  return {
    append: (stream, expected, events) =>
      closed === undefined
        ? appends.append(stream, expected, events)
        : Promise.reject(new StoreUnavailable('the event store is closed')),
    ...reads,
    stored: {
      ...storedForms(thread),
      scan: (order) => scans.run(overFile({ file, isLive: true }, order)),
    },
    subscribe: (after, signal, types) =>
      ofTypes(follow(tail, reads.readAll, after, AbortSignal.any([signal, closing.signal])), types),
    lastPosition: () => lastOf(tail),
    stats: () => ({ ...appends.counters }),
    ping: appends.ping,
    claimMeta: (key, value) => thread.call('claimMeta', { key, value }).catch(rethrow),
    close() {
      closing.abort();
      closed ??= appends
        .done()
        // The last to close the file moves its write-ahead log into it: a reader could not.
        .then(scans.end)
        .then(() => end(thread));
      return closed;
    },
  };
}

/**
 * Opens a file that no process writes to, for reading: its end is not verified, so that a damaged log
 * can be looked at. `file` is an address of SQLite (`file:///…?immutable=1`) or the path of a copy. An
 * append throws StoreUnavailable; a read of a part that is damaged throws StoreFileUnusable, as the
 * opening does where nothing can be read.
 */
export async function openSqliteForReading(file: string): Promise<EventStore> {
  const thread = await startThread({ file, readOnly: true }, () => undefined).catch(rethrow);
  const tail = liveTail(thread.openedAt);
  const reads = readers(thread, tail);
  const scans = createScanThread({ priorityLoweredBy: SCANS_LOWERED_BY });
  return {
    append: () => Promise.reject(new StoreUnavailable('the log was opened for reading')),
    // Stores nothing: a value that is not there yet is given back.
    claimMeta: (key, value) => thread.call('claimMeta', { key, value }).catch(rethrow),
    ...reads,
    stored: {
      ...storedForms(thread),
      scan: (order) => scans.run(overFile({ file, isLive: false }, order)),
    },
    subscribe: (after, signal, types) => ofTypes(follow(tail, reads.readAll, after, signal), types),
    close: () => scans.end().then(() => end(thread)),
  };
}

function createPrivateFile(file: string): void {
  try {
    ensurePrivateFile(file);
  } catch (error) {
    throw new StoreFileUnusable(`${file}: ${(error as Error).message}`);
  }
}

/** Never throws: a file that could not be closed cleanly is as after a crash, and loses nothing. */
const end = (thread: Thread): Promise<void> =>
  thread.call('close', {}).then(
    () => undefined,
    () => undefined,
  );

const lastOf = (tail: LiveTail): Position | null =>
  tail.last() === 0 ? null : String(tail.last());

function readers(
  thread: Thread,
  tail: LiveTail,
): Pick<
  EventStore,
  'readStream' | 'lastRevision' | 'readAll' | 'end' | 'positionOf' | 'hashAt' | 'head'
> {
  return {
    async readStream(stream) {
      const rows = await thread.call('readStream', { stream }).catch(rethrow);
      return wholeStream(await mapInSlices(rows, decodeRow));
    },
    lastRevision: (stream) => thread.call('lastRevision', { stream }).catch(rethrow),
    async readAll(after, limit, upTo) {
      const args = pageArgs(after, limit, upTo);
      const rows = await thread.call('readAll', args).catch(rethrow);
      return mapInSlices(rows, decodeRow);
    },
    end: async () => lastOf(tail),
    positionOf: (text) => {
      const number = positionNumber(text);
      if (number === 0) throw new RangeError('the first event has position 1');
      return String(number);
    },
    hashAt: async (position) =>
      thread.call('hashAt', { position: positionNumber(position) }).catch(rethrow),
    async head(after): Promise<Head> {
      const from = positionNumber(after);
      const last = tail.last();
      const position = lastOf(tail);
      if (from >= last) return { position, eventsAfter: 0, isExact: true, oldestAfter: null };
      const next = tail.after(from, 1)?.[0]?.time;
      const oldestAfter = next ?? (await thread.call('timeAfter', { after: from }).catch(rethrow));
      return { position, eventsAfter: last - from, isExact: true, oldestAfter };
    },
  };
}

function storedForms(thread: Thread): StoredForms {
  return {
    guarantee: 'log',
    async readStream(stream) {
      return (await thread.call('readStream', { stream }).catch(rethrow)).map(formOf);
    },
    async readAll(after, limit, upTo) {
      const args = pageArgs(after, limit, upTo);
      return (await thread.call('readAll', args).catch(rethrow)).map(formOf);
    },
  };
}
