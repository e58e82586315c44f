/**
 * Append-only streams with exact revisions, and one order over all. test/event-store tests each driver for:
 * - An append at 'none' to an existing stream, or at a stale revision, rejects with RevisionConflict and writes
 *   nothing; of concurrent appends at one revision one wins.
 * - A batch is stored whole or not at all. Its repeat (same ids, same revision) succeeds and stores nothing.
 * - An unknown stream reads as empty. A deleted or cut one is never taken for whole: StreamNotWhole.
 * - A reader that reads to the log's end stops there, however many events that takes.
 * - A subscription gives each event after its position once, in order, says when it has caught up, waits for a
 *   slow reader and resumes after a dropped connection.
 */
import type { DomainEvent, EventType } from '../payment/events.ts';
import type { JobGiven, JobSteps, JobTools } from '../runtime/jobs.ts';

/** A place in the order over all streams: stored and passed back, never computed with. */
export type Position = string;

export type EventContext = {
  /** The token's subject, or `recovery`. */
  actor: string;
  requestId: string;
  correlationId: string;
  /** The event that led here (the intent, for an outcome), else the request id. */
  causationId: string;
  /** W3C Trace Context, as it came, well formed or not. */
  traceparent?: string | undefined;
};

/** `id` is a UUID made once, at the decision. */
export type NewEvent<E extends DomainEvent = DomainEvent> = {
  id: string;
  /** RFC 3339 in UTC with milliseconds; never before the event before it in the stream. */
  time: string;
  event: E;
  context: EventContext;
};

/** Decoded and upcast to the current schema. */
export type RecordedEvent<E extends DomainEvent = DomainEvent> = NewEvent<E> & {
  stream: string;
  /** From 0, without a gap. */
  revision: number;
  position: Position;
  schemaVersion: number;
  /** SHA-256 in hex over the stored form, which names `previousHash` (chain.ts). */
  hash: string;
  previousHash: string;
  /** Where the store keeps a chain over the log (`stored.guarantee` log). */
  logHash?: string;
};

export type UnreadableEvent = {
  stream: string;
  revision: number;
  position: Position;
  unreadable: string;
  /** Where the store knows it: the log hash goes on over it. */
  hash?: string;
  logHash?: string;
};

export type LogEvent = RecordedEvent | UnreadableEvent;

/** An event as it is stored, readable or not: for proofs and exports. */
export type StoredForm = {
  position: Position;
  stream: string;
  revision: number;
  hash: string;
  /** The hashed text: canonical JSON. */
  text: string;
  /** `id` and `logHash`: where the store keeps them next to the text. */
  id?: string;
  logHash?: string;
  /** Of the event before it in the log, null where that event is missing. */
  logHashBefore?: string | null;
};

/** What a check of the file named; of a fault that it cannot place, `position` and `stream` are empty. */
export type FileFault = Pick<StoredForm, 'position' | 'stream' | 'revision'> & { reason: string };

/** Each call throws StoreUnavailable. */
export type StoredForms = {
  /** `log`: one chain over all events as well; `stream`: each stream alone. */
  guarantee: 'log' | 'stream';
  /** Empty when unknown. Throws StreamNotWhole where deleted or all of it cut (`formsLeft`). */
  readStream(stream: string): Promise<StoredForm[]>;
  readAll(after: Position | null, limit: number, upTo?: Position | null): Promise<StoredForm[]>;
  /** Runs a job in a thread over the log; left out where no thread can open it. */
  scan?<A, Y, R, C extends object>(
    job: LogJob<A, Y, R, C>,
    args: A,
    given: JobGiven<C>,
  ): AsyncGenerator<Y, R>;
  /**
   * Checks the file that the log lies in, its indexes included; left out where a server keeps the log. Until a
   * later check, a stream that it names takes no event, and none does where it cannot name them all.
   */
  checkFile?(signal: AbortSignal): Promise<FileFault[]>;
  /** Calls back at the first read or append that meets damage of the file. */
  onDamage?(listener: () => void): void;
};

export type Expected = 'none' | { revision: number; hash: string };

/** `logHash` covers the whole log, `hash` its stream alone. */
export type HashesAt = { hash: string; logHash?: string };

/** Informs people and gauges; never a place to read from. */
export type Head = {
  /** Of the last event, null for an empty log. */
  position: Position | null;
  /** At least so many, unless `isExact`. */
  eventsAfter: number;
  isExact: boolean;
  /** The time of the first of them. */
  oldestAfter: string | null;
};

export type SubscriptionItem =
  | { kind: 'events'; events: LogEvent[] }
  /** An administrator may have deleted or cut this stream: read it. No position; may come again. */
  | { kind: 'removal'; stream: string }
  /** A hint that all so far is delivered. May stand inside an append; sent again after a dropped connection. */
  | { kind: 'caught-up' };

export type EventStore = {
  /**
   * Resolves with the stored events once they are durable; the position of each but the last may be empty
   * (docs/eventstoredb.md). Throws RevisionConflict, StreamNotWhole when it is known to be deleted or cut,
   * StoreUnavailable (nothing was stored) and AppendOutcomeUnknown.
   */
  append(stream: string, expected: Expected, events: NewEvent[]): Promise<RecordedEvent[]>;
  /**
   * Verifies its hashes (L3). Throws UnreadableStream at an event that cannot be read or does not verify,
   * StreamNotWhole where the stream lacks its beginning or is known to be deleted, StoreUnavailable.
   */
  readStream(stream: string): Promise<RecordedEvent[]>;
  /** Null for a stream that never was (gaps §9). Throws StoreUnavailable, StreamNotWhole. */
  lastRevision(stream: string): Promise<number | null>;
  /**
   * Up to `limit` events of all streams in order, from `after` (null: the start) to `upTo`, which `end` gave
   * (null: an empty log); empty only when none are left. Throws RangeError (no position), StoreUnavailable.
   */
  readAll(after: Position | null, limit: number, upTo?: Position | null): Promise<LogEvent[]>;
  /** The last event's position, null in an empty log. Counts nothing. Throws StoreUnavailable. */
  end(): Promise<Position | null>;
  /**
   * A place before all events of `time`, in UTC with milliseconds, or later, as far as the clocks that
   * wrote them agree; null: the start. Throws StoreUnavailable.
   */
  positionBefore(time: string): Promise<Position | null>;
  /** A position to compare, in the form of events. Throws RangeError for an impossible text. */
  positionOf(text: string): Position;
  /** Null where no event is. Throws StoreUnavailable. */
  hashAt(position: Position): Promise<HashesAt | null>;
  /** How far `after` (null: the start) is behind the end of the log. Throws as `readAll`. */
  head(after: Position | null): Promise<Head>;
  /**
   * Everything after a position (null: the start) until `signal` is aborted. A store may leave out
   * other types than `types`; unreadable events and removals still come.
   */
  subscribe(
    after: Position | null,
    signal: AbortSignal,
    types?: readonly EventType[],
  ): AsyncIterable<SubscriptionItem>;
  /** Stores a new key's value; returns the first writer's (gaps §8). Throws StoreUnavailable. */
  claimMeta(key: string, value: string): Promise<string>;
  stored: StoredForms;
  /**
   * Ends once all appends are durable, or where a server does not answer within a moment: calls
   * under way then throw AppendOutcomeUnknown, StoreUnavailable. May be called again.
   */
  close(): Promise<void>;
};

/** The store, or a thread of its own over the same log. */
export type LogReader = Pick<
  EventStore,
  'readAll' | 'readStream' | 'lastRevision' | 'end' | 'positionBefore' | 'hashAt' | 'stored'
>;

/** A job (shared/runtime/jobs.ts) that reads a log: `scanLog` runs it. */
export type LogJob<A, Y, R, C = object> = (
  log: LogReader,
  args: A,
  tools: JobTools<C>,
) => JobSteps<Y, R>;
