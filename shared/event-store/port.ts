/**
 * The event store: append-only streams with exact revisions, and one order over all of them.
 * Every driver keeps these promises; test/contract/event-store tests each driver for them:
 *
 * - Appending at 'none' to an existing stream, or at a stale revision, rejects with
 *   RevisionConflict and writes nothing. There is no "any" revision.
 * - Of concurrent appends at one revision exactly one wins. A batch is stored whole or not at all.
 * - The same event ids again, at the same expected revision, succeed and store nothing twice.
 * - An unknown stream reads as empty. Nothing can be changed or deleted through the port. What an
 *   administrator of the store deletes or cuts is never taken for whole: StreamNotWhole.
 * - The log's end is a place. A reader that reads to it stops there, however many events that takes.
 * - A subscription gives every event after its position once, in order, says when it has caught
 *   up, waits for a slow reader and goes on by itself after a dropped connection.
 */
import type { DomainEvent, EventType } from '../payment/events.ts';
import type { ScanOrder } from '../runtime/scan.ts';

/** A place in the order over all streams. Opaque: stored and passed back, never computed with. */
export type Position = string;

/** What caused an event (gaps §6). */
export type EventContext = {
  /** The token's subject, or `recovery`. */
  actor: string;
  requestId: string;
  correlationId: string;
  /** The event that led here (the intent, for an outcome), else the request id. */
  causationId: string;
  /** W3C Trace Context, where the request was traced; stored as it came, well formed or not. */
  traceparent?: string | undefined;
};

/** An event that has been decided but not stored. `id` is a UUID made once, at the decision. */
export type NewEvent<E extends DomainEvent = DomainEvent> = {
  id: string;
  /** RFC 3339 in UTC with milliseconds; never before that of the event before it in the stream. */
  time: string;
  event: E;
  context: EventContext;
};

/** A stored event, decoded and upcast to the current schema. */
export type RecordedEvent<E extends DomainEvent = DomainEvent> = NewEvent<E> & {
  stream: string;
  /** From 0, without a gap, within the stream. */
  revision: number;
  position: Position;
  /** The version its data was stored with. */
  schemaVersion: number;
  /** SHA-256 in hex over the stored form and `previousHash` (chain.ts). */
  hash: string;
  previousHash: string;
  /** Its link in the chain over the whole log, where the store keeps one (`stored.guarantee` log). */
  logHash?: string;
};

/** A stored event that the current code cannot read; `unreadable` says why. */
export type UnreadableEvent = {
  stream: string;
  revision: number;
  position: Position;
  unreadable: string;
  /** Where the store knows it: the log hash goes on over it. */
  hash?: string;
  logHash?: string;
};

/** An event as a reader of the whole log gets it. */
export type LogEvent = RecordedEvent | UnreadableEvent;

/** An event as it is stored, readable or not: proofs and exports are made of these. */
export type StoredForm = {
  position: Position;
  stream: string;
  revision: number;
  hash: string;
  /** The text that was hashed: canonical JSON (chain.ts). */
  text: string;
  /** Its id and its link in the chain over the log, where the store keeps them beside the text. */
  id?: string;
  logHash?: string;
  /** The log hash of the event before it in the log, null where that event is missing. */
  logHashBefore?: string | null;
};

/** Reads events in their stored form. Each call throws StoreUnavailable. */
export type StoredForms = {
  /** What the chains cover: `log`, one chain over all events as well; `stream`, each stream alone. */
  guarantee: 'log' | 'stream';
  /**
   * A stream from its first event; empty when unknown. Throws StreamNotWhole where it was deleted, or all
   * of it cut; `formsLeft` (verify-chain.ts) reads on all the same.
   */
  readStream(stream: string): Promise<StoredForm[]>;
  /** As `readAll` of the store. */
  readAll(after: Position | null, limit: number, upTo?: Position | null): Promise<StoredForm[]>;
  /**
   * Runs a scan of the log in a thread that reads it by itself (scan-log.ts calls it); left out by a
   * driver whose log no thread can open.
   */
  scan?<Y, R>(order: ScanOrder): AsyncGenerator<Y, R>;
};

/** Where an append expects its stream to end: nowhere yet, or at this event exactly. */
export type Expected = 'none' | { revision: number; hash: string };

/** `logHash` covers the whole log up to an event, where there is a chain over it; `hash` its stream alone. */
export type HashesAt = { hash: string; logHash?: string };

/** How far a position is behind the end of the log: for people and gauges, never to read by. */
export type Head = {
  /** The last position, or null when the log is empty. */
  position: Position | null;
  /** How many events lie after the position that `head` was given: at least so many, unless `isExact`. */
  eventsAfter: number;
  isExact: boolean;
  /** The time of the first of them, or null when there is none. */
  oldestAfter: string | null;
};

/** What a subscription delivers: events in batches, and a mark when there are no more for now. */
export type SubscriptionItem =
  | { kind: 'events'; events: LogEvent[] }
  /**
   * An administrator of the store deleted or cut this stream, or may have; sent in the log's order.
   * Reading the stream shows whether it is still whole. Has no position: a reader that begins again
   * may get it again.
   */
  | { kind: 'removal'; stream: string }
  /**
   * What was appended before the subscription began has been delivered, and of the rest what has come so far:
   * a hint, which may stand between two events of one append. Sent again after a dropped connection.
   */
  | { kind: 'caught-up' };

/** The port; the promises at the top of this file are its contract. */
export type EventStore = {
  /**
   * Stores a batch at the end of one stream and resolves, once it is durable, with the events as
   * they were stored. The position of each event but the last may be empty: a store that names one
   * place for a batch is not asked for the others (docs/eventstoredb.md). Throws RevisionConflict when the stream
   * does not end where expected, StreamNotWhole when it is known to be deleted or cut,
   * StoreUnavailable when the store cannot take writes now (nothing was stored), and
   * AppendOutcomeUnknown when it cannot be known whether the batch was stored.
   */
  append(stream: string, expected: Expected, events: NewEvent[]): Promise<RecordedEvent[]>;
  /**
   * Reads a stream from revision 0; empty when unknown. Its hashes are verified as it is read (L3).
   * Throws UnreadableStream at an event that the current code cannot read or that does not verify,
   * StreamNotWhole where the store holds its later events alone, or knows that it was deleted,
   * StoreUnavailable when the store is out of reach.
   */
  readStream(stream: string): Promise<RecordedEvent[]>;
  /**
   * The revision of the last event of a stream, or null when it is unknown: shows whether a document is
   * behind (gaps §9). Throws StoreUnavailable, and StreamNotWhole for a stream that was deleted, for good
   * or not: null means that the stream never was.
   */
  lastRevision(stream: string): Promise<number | null>;
  /**
   * Reads up to `limit` events of all streams after a position (null: from the start), in order. With
   * `upTo`, the place that `end` gave, none beyond it: empty only where there are no more up to there
   * (null: an empty log). Throws RangeError for a text that is no position, and StoreUnavailable.
   */
  readAll(after: Position | null, limit: number, upTo?: Position | null): Promise<LogEvent[]>;
  /** The position of the last event now, null in an empty log. Counts nothing. Throws StoreUnavailable. */
  end(): Promise<Position | null>;
  /**
   * The position that a text names, as events have it: positions in one form can be compared. Whether an
   * event is there is not looked at. Throws RangeError for a text that no event of this store can have.
   */
  positionOf(text: string): Position;
  /** The hashes of the event at a position, or null where none is. Throws StoreUnavailable. */
  hashAt(position: Position): Promise<HashesAt | null>;
  /** How far `after` (null: the start) is behind the end of the log. Throws as `readAll`. */
  head(after: Position | null): Promise<Head>;
  /**
   * Delivers everything after a position (null: from the start) until `signal` is aborted. With
   * `types` no event of another type, so that a store that can leaves them out at its source; one
   * that cannot be read may still come, and so may a removal. With `others` a store may leave out
   * the events that were appended through it meanwhile.
   */
  subscribe(
    after: Position | null,
    signal: AbortSignal,
    types?: readonly EventType[],
    whose?: 'all' | 'others',
  ): AsyncIterable<SubscriptionItem>;
  /**
   * Stores a value under a key that has none, and returns the stored value, which is the first
   * writer's (gaps §8, the check value of the idempotency secret). Throws StoreUnavailable.
   */
  claimMeta(key: string, value: string): Promise<string>;
  /** For exports and verification. */
  stored: StoredForms;
  /**
   * Ends after everything appended so far is durable. Where a server does not answer within a moment,
   * its calls end as they do at a time-out: AppendOutcomeUnknown, StoreUnavailable. May be called again.
   */
  close(): Promise<void>;
};

/** A reader of the whole log: the store, or a thread of its own over the same log. */
export type LogReader = Pick<
  EventStore,
  'readAll' | 'readStream' | 'lastRevision' | 'end' | 'hashAt' | 'stored'
>;
