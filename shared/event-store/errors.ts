/** The port's errors. Code branches on the class or, between threads, on `code`; people read `message`. */
import { onError } from '../runtime/error-text.ts';
import type { Metrics } from '../runtime/metrics.ts';
import type { RecordedEvent } from './port.ts';

/** Nothing was stored: load, decide and append again. */
export class RevisionConflict extends Error {
  override name = 'RevisionConflict';
}

/** Out of reach, closed, or its disk is full. Nothing was stored; the call may succeed later. */
export class StoreUnavailable extends Error {
  readonly code: 'EVENT_STORE_UNAVAILABLE' | 'EVENT_STORE_FILE_UNUSABLE' =
    'EVENT_STORE_UNAVAILABLE';
  override name = 'StoreUnavailable';
}

/** The file is not writable, damaged, or of a newer version; a person has to put it right. */
export class StoreFileUnusable extends StoreUnavailable {
  override readonly code = 'EVENT_STORE_FILE_UNUSABLE';
  /** Its pages or its last events: a person verifies the log before anything is done about it. */
  readonly isDamaged: boolean;
  constructor(message: string, isDamaged = false) {
    super(message);
    this.isDamaged = isDamaged;
  }
}

/** May be stored: repeat the very same append or read the stream, before you decide again. */
export class AppendOutcomeUnknown extends Error {
  override name = 'AppendOutcomeUnknown';
}

/** Counted by the drivers; tests may leave them out. */
export type AppendMetrics = Pick<Metrics, 'appendBatches' | 'appendFailures'>;

/** For `catch` of an append: counts one that failed, or whose outcome is unknown. Throws the error. */
export const countFailure =
  (metrics: AppendMetrics | undefined) =>
  (error: unknown): never => {
    if (error instanceof StoreUnavailable || error instanceof AppendOutcomeUnknown)
      metrics?.appendFailures.inc();
    throw error;
  };

/** The current code cannot read an event of the stream. Reading it again gives the same. */
export class UnreadableStream extends Error {
  override name = 'UnreadableStream';
  /** The events before the first that cannot be read or cannot follow. */
  readonly before: RecordedEvent[];
  /** Of that event, or of the stream. */
  readonly why: string | undefined;
  constructor(message: string, before: RecordedEvent[] = [], why?: string) {
    super(message);
    this.before = before;
    this.why = why;
  }
}

/** For a read that goes on past streams that cannot be read. Throws every other error. */
export const asUnreadable = onError(UnreadableStream, (error) => error);

/** An administrator deleted the stream, cut its beginning, or refuses it. Nothing was stored. */
export class StreamNotWhole extends UnreadableStream {
  override name = 'StreamNotWhole';
  declare readonly why: string;
  /** `what`: the stream or its payment. */
  constructor(what: string, why: string) {
    super(`${what}: ${why}`, [], why);
  }
}

/** A stream by which the service itself works (gaps §29). The message is a line for its operator. */
export class ControlNotWhole extends StreamNotWhole {
  override name = 'ControlNotWhole';
  constructor(stream: string, why: string) {
    super(stream, `${why}; put it back as docs/eventstoredb.md says, "Streams of control"`);
  }
}
