/**
 * The errors of the event-store port: every driver throws these, and none of its client's. Code
 * branches on the class or on `code`, never on `message`, which is one line for a person to read.
 */
import type { RecordedEvent } from './port.ts';

/** The stream does not end where the append expected. Nothing was stored: load, decide and append again. */
export class RevisionConflict extends Error {
  readonly code = 'REVISION_CONFLICT';
  override name = 'RevisionConflict';
}

/**
 * The store cannot be used now: out of reach, closed, or its disk is full. An append that ends so
 * stored nothing, and the same call may succeed later.
 */
export class StoreUnavailable extends Error {
  readonly code: 'EVENT_STORE_UNAVAILABLE' | 'EVENT_STORE_FILE_UNUSABLE' =
    'EVENT_STORE_UNAVAILABLE';
  override name = 'StoreUnavailable';
}

/**
 * The store's file cannot be opened: not writable, damaged, or written by a newer version. The
 * message names the file. No event was read or stored, and a person has to put the file right.
 */
export class StoreFileUnusable extends StoreUnavailable {
  override readonly code = 'EVENT_STORE_FILE_UNUSABLE';
}

/**
 * The store did not say whether the batch was stored. Repeat the very same append (the same event
 * ids at the same revision), or read the stream; never decide again before one of them is done.
 */
export class AppendOutcomeUnknown extends Error {
  readonly code = 'APPEND_OUTCOME_UNKNOWN';
  override name = 'AppendOutcomeUnknown';
}

/** The current code cannot read an event of the stream. Reading it again gives the same. */
export class UnreadableStream extends Error {
  readonly code: 'UNREADABLE_STREAM' | 'STREAM_NOT_WHOLE' = 'UNREADABLE_STREAM';
  override name = 'UnreadableStream';
  /** The events before the first that cannot be read or cannot follow, from revision 0. */
  readonly before: RecordedEvent[];
  constructor(message: string, before: RecordedEvent[] = []) {
    super(message);
    this.before = before;
  }
}

/**
 * The store no longer holds a stream whole: it was deleted, or its beginning cut off, past this service.
 * Nothing was stored. No command may be decided on what is left until the stream is put back.
 */
export class StreamNotWhole extends UnreadableStream {
  override readonly code = 'STREAM_NOT_WHOLE';
  override name = 'StreamNotWhole';
}
