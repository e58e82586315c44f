/**
 * The errors of the port, which every driver throws. Code branches on class or `code`, never on
 * `message`, which is one line for a person.
 */
import type { RecordedEvent } from './port.ts';

/** Nothing was stored: load, decide and append again. */
export class RevisionConflict extends Error {
  readonly code = 'REVISION_CONFLICT';
  override name = 'RevisionConflict';
}

/**
 * The store is out of reach, closed, or its disk is full. Nothing was stored; the call may succeed
 * later.
 */
export class StoreUnavailable extends Error {
  readonly code: 'EVENT_STORE_UNAVAILABLE' | 'EVENT_STORE_FILE_UNUSABLE' =
    'EVENT_STORE_UNAVAILABLE';
  override name = 'StoreUnavailable';
}

/** The file is not writable, damaged, or of a newer version; a person has to put it right. */
export class StoreFileUnusable extends StoreUnavailable {
  override readonly code = 'EVENT_STORE_FILE_UNUSABLE';
}

/**
 * The batch may be stored. Repeat the very same append (same ids, same revision) or read the
 * stream; never decide again before.
 */
export class AppendOutcomeUnknown extends Error {
  readonly code = 'APPEND_OUTCOME_UNKNOWN';
  override name = 'AppendOutcomeUnknown';
}

/** The current code cannot read an event of the stream. Reading it again gives the same. */
export class UnreadableStream extends Error {
  readonly code: 'UNREADABLE_STREAM' | 'STREAM_NOT_WHOLE' = 'UNREADABLE_STREAM';
  override name = 'UnreadableStream';
  /** The events before the first that cannot be read or cannot follow. */
  readonly before: RecordedEvent[];
  constructor(message: string, before: RecordedEvent[] = []) {
    super(message);
    this.before = before;
  }
}

/**
 * An administrator deleted the stream or cut its beginning. Nothing was stored; decide no command
 * on the rest.
 */
export class StreamNotWhole extends UnreadableStream {
  override readonly code = 'STREAM_NOT_WHOLE';
  override name = 'StreamNotWhole';
}
