/**
 * The event store in one SQLite file: the main-thread half. It encodes, groups appends and serves
 * live subscribers from memory; the file belongs to a thread of its own (sqlite-worker.ts), so that
 * a slow disk never stalls the event loop.
 *
 * This process must be the only one that writes the file.
 */
import { ensurePrivateFile } from '../../runtime/private-files.ts';
import { GENESIS_HASH, hashOf } from '../chain.ts';
import { decode, type EncodedEvent, encode, isReadable } from '../codec.ts';
import {
  AppendOutcomeUnknown,
  RevisionConflict,
  StoreFileUnusable,
  StoreUnavailable,
  UnreadableStream,
} from '../errors.ts';
import type {
  EventStore,
  Expected,
  Head,
  NewEvent,
  Position,
  RecordedEvent,
  StoredForm,
  StoredForms,
  UnreadableEvent,
} from '../port.ts';
import type { Link } from '../verify-chain.ts';
import { follow, type LiveTail, liveTail, positionNumber } from './live-tail.ts';
import { Failed, startThread, type Thread } from './thread.ts';
import type { AppendJob, AppendOutcome, Failure, Row } from './worker.ts';

// Above it appends are refused: a disk that stands still must not fill the memory.
const WAITING_APPENDS_MAX = 10_000;

export type SqliteEventStoreOptions = {
  /** The path of the database file; made with mode 0600 when it is not there. */
  file: string;
  /** Hears when the disk is full, and when it takes events again. */
  logger?: { warn(details: object, message: string): void };
  /** Called once when the file can take no more writes for good: the process should exit. */
  onFatal?: (error: Error) => void;
  /** For tests that need a full disk: the size in pages that the file cannot grow over. */
  maxPages?: number;
};

/** Counters since the store was opened. */
export type SqliteEventStoreStats = {
  /** Appends that were stored, not counting repeats. */
  appends: number;
  /** Transactions that stored something: one fsync each. */
  commits: number;
  events: number;
};

export type SqliteEventStore = EventStore & {
  /** The last position of the log now, or null when it is empty. */
  lastPosition(): Position | null;
  stats(): SqliteEventStoreStats;
  /**
   * Whether it takes events now. After a full disk it finds out by a small write of its own, for
   * nobody may be sent here to try. Throws StoreUnavailable.
   */
  ping(): Promise<void>;
};

/**
 * Opens the store, making or migrating the file, and verifies the end of its hash chain.
 * Throws StoreUnavailable with one line for the operator when the file cannot be used: not
 * writable, damaged (the line names position, stream and revision), written by a newer version.
 */
export async function openSqliteEventStore(
  options: SqliteEventStoreOptions,
): Promise<SqliteEventStore> {
  const { file, maxPages, onFatal } = options;
  createPrivateFile(file);
  const thread = await startThread({ file, maxPages }, ({ message }) =>
    onFatal?.(new StoreUnavailable(message)),
  ).catch(rethrow);
  const tail = liveTail(thread.openedAt);
  const appends = groupCommit(thread, tail, options.logger);
  const reads = readers(thread, tail);
  const closing = new AbortController();
  let closed: Promise<void> | undefined;

  return {
    append: (stream, expected, events) =>
      closed === undefined
        ? appends.append(stream, expected, events)
        : Promise.reject(new StoreUnavailable('the event store is closed')),
    ...reads,
    stored: storedForms(thread),
    subscribe: (after, signal) =>
      follow(tail, reads.readAll, after, AbortSignal.any([signal, closing.signal])),
    lastPosition: () => (tail.last() === 0 ? null : String(tail.last())),
    stats: () => ({ ...appends.counters }),
    ping: appends.ping,
    claimMeta: (key, value) => thread.ask('claimMeta', { key, value }).catch(rethrow),
    close() {
      closing.abort();
      closed ??= appends.done().then(() => end(thread));
      return closed;
    },
  };
}

function createPrivateFile(file: string): void {
  try {
    ensurePrivateFile(file);
  } catch (error) {
    throw new StoreFileUnusable(`${file}: ${(error as Error).message}`);
  }
}

/** A file that cannot be closed cleanly is as durable as after a crash: nothing is lost. */
const end = (thread: Thread): Promise<void> =>
  thread.ask('close', {}).then(
    () => undefined,
    () => undefined,
  );

function rethrow(error: unknown): never {
  if (!(error instanceof Failed)) throw error;
  const { message, failure } = error;
  throw failure.kind === 'unusable'
    ? new StoreFileUnusable(message)
    : new StoreUnavailable(message);
}

function decodeRow([number, stream, revision, hash, text]: Row): RecordedEvent | UnreadableEvent {
  const position = String(number);
  const event = decode({ position, stream, revision, hash, text });
  // A flipped bit can leave a text that reads well: another amount, another card.
  if (!isReadable(event) || hashOf(text) === hash) return event;
  return { stream, revision, position, unreadable: 'its text does not have its hash' };
}

function allReadable(events: (RecordedEvent | UnreadableEvent)[]): RecordedEvent[] {
  return events.map((event, at) => {
    if (isReadable(event)) return event;
    const { stream, revision, unreadable } = event;
    const before = events.slice(0, at).filter(isReadable);
    throw new UnreadableStream(`${stream}, revision ${revision}: ${unreadable}`, before);
  });
}

function readers(
  thread: Thread,
  tail: LiveTail,
): Pick<EventStore, 'readStream' | 'lastRevision' | 'readAll' | 'hashAt' | 'head'> {
  return {
    async readStream(stream) {
      const rows = await thread.ask('readStream', { stream }).catch(rethrow);
      return allReadable(rows.map(decodeRow));
    },
    lastRevision: (stream) => thread.ask('lastRevision', { stream }).catch(rethrow),
    async readAll(after, limit) {
      const args = { after: positionNumber(after), limit };
      const rows = await thread.ask('readAll', args).catch(rethrow);
      return rows.map(decodeRow);
    },
    hashAt: async (position) =>
      thread.ask('hashAt', { position: positionNumber(position) }).catch(rethrow),
    async head(after): Promise<Head> {
      const from = positionNumber(after);
      const last = tail.last();
      const position = last === 0 ? null : String(last);
      if (from >= last) return { position, eventsAfter: 0, oldestAfter: null };
      const next = tail.after(from, 1)?.[0]?.time;
      const oldestAfter = next ?? (await thread.ask('timeAfter', { after: from }).catch(rethrow));
      return { position, eventsAfter: last - from, oldestAfter };
    },
  };
}

const storedForm = (row: Link<number>): StoredForm => ({ ...row, position: String(row.position) });

function storedForms(thread: Thread): StoredForms {
  return {
    guarantee: 'log',
    async readStream(stream) {
      return (await thread.ask('storedStream', { stream }).catch(rethrow)).map(storedForm);
    },
    async readAll(after, limit) {
      const args = { after: positionNumber(after), limit };
      return (await thread.ask('storedAll', args).catch(rethrow)).map(storedForm);
    },
  };
}

type Waiting = {
  stream: string;
  job: AppendJob;
  encoded: EncodedEvent[];
  resolve: (events: RecordedEvent[]) => void;
  reject: (error: Error) => void;
};

const jobOf = (stream: string, expected: Expected, encoded: EncodedEvent[]): AppendJob => ({
  stream,
  revision: expected === 'none' ? -1 : expected.revision,
  hash: expected === 'none' ? GENESIS_HASH : expected.hash,
  ids: encoded.map(({ recorded }) => recorded.id),
  hashes: encoded.map(({ recorded }) => recorded.hash),
  texts: encoded.map(({ text }) => text),
});

function appendError({ message, unknown }: Failure): Error {
  return unknown ? new AppendOutcomeUnknown(message) : new StoreUnavailable(message);
}

/**
 * Everything appended within a turn of the event loop, or while the thread is at work on the group
 * before, goes over in one message and becomes one transaction with one fsync.
 */
function groupCommit(thread: Thread, tail: LiveTail, logger: SqliteEventStoreOptions['logger']) {
  const counters: SqliteEventStoreStats = { appends: 0, commits: 0, events: 0 };
  let waiting: Waiting[] = [];
  let working: Promise<void> | undefined;
  let full = false;

  async function work(): Promise<void> {
    while (waiting.length > 0) {
      await new Promise((resolve) => setImmediate(resolve));
      const group = waiting;
      waiting = [];
      await commit(group);
    }
    working = undefined;
  }

  async function commit(group: Waiting[]): Promise<void> {
    const jobs = group.map(({ job }) => job);
    const outcomes = await thread.ask('append', { jobs }).catch((error: Failed) => error);
    if (outcomes instanceof Failed) reject(group, outcomes.failure);
    else resolve(group, outcomes);
  }

  function reject(group: Waiting[], failure: Failure): void {
    if (failure.kind === 'full' && !full) logger?.warn({}, `event store: ${failure.message}`);
    full = failure.kind === 'full';
    for (const { reject } of group) reject(appendError(failure));
  }

  function hasRoom(): void {
    if (full) logger?.warn({}, 'event store: the disk takes events again');
    full = false;
  }

  function resolve(group: Waiting[], outcomes: AppendOutcome[]): void {
    const eventsBefore = counters.events;
    for (const [index, one] of group.entries()) resolveOne(one, outcomes[index] as AppendOutcome);
    if (counters.events === eventsBefore) return;
    counters.commits += 1;
    tail.announce();
    hasRoom();
  }

  function resolveOne({ stream, encoded, resolve, reject }: Waiting, outcome: AppendOutcome): void {
    try {
      if (typeof outcome === 'number') resolve(placed(encoded, outcome));
      else if ('repeated' in outcome) resolve(allReadable(outcome.repeated.map(decodeRow)));
      else reject(new RevisionConflict(`${stream} ${outcome.conflict}`));
    } catch (error) {
      reject(error as Error);
    }
  }

  function placed(encoded: EncodedEvent[], first: number): RecordedEvent[] {
    counters.appends += 1;
    counters.events += encoded.length;
    return encoded.map(({ recorded }, index) => {
      const event = Object.assign(recorded, { position: String(first + index) });
      tail.push(event);
      return event;
    });
  }

  return {
    counters,
    async append(stream: string, expected: Expected, events: NewEvent[]): Promise<RecordedEvent[]> {
      if (waiting.length >= WAITING_APPENDS_MAX) {
        throw new StoreUnavailable('too many appends wait for the disk');
      }
      const encoded = encode(stream, expected, events);
      return new Promise((resolve, reject) => {
        waiting.push({ stream, job: jobOf(stream, expected, encoded), encoded, resolve, reject });
        working ??= work();
      });
    },
    async ping(): Promise<void> {
      if (!full) return;
      await thread.ask('probe', {}).catch(rethrow);
      hasRoom();
    },
    /** Resolves when every append so far has its answer. */
    done: (): Promise<void> => working ?? Promise.resolve(),
  };
}
