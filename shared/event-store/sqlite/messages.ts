/** The messages between event-store.ts and the thread that owns its file (worker.ts). */

/** `maxPages` caps the file's size; only tests set it, to meet a full disk. */
export type WorkerOptions = {
  file: string;
  maxPages?: number | undefined;
  /** Only read; the end of the chain is not verified. */
  readOnly?: boolean | undefined;
};

/** One append. `revision` and `hash` are those of the stream's expected last event, -1 for none. */
export type AppendJob = {
  stream: string;
  revision: number;
  hash: string;
  events: { id: string; hash: string; text: string }[];
};

/** A stored event: position, stream, revision, id, hash, log hash, text, log hash of the row before it. */
export type Row = [number, string, number, string, string, string, string, string | null];

/** `repeated`: the append was stored before. */
export type AppendOutcome =
  | { first: number; logHashes: string[] }
  | { repeated: Row[] }
  | { conflict: string };

/**
 * `busy`: try again later; `full`: the disk has no space; `fatal`: this process can never write to the
 * file again and must exit; `unusable`: the file cannot be opened.
 */
type FailureKind = 'busy' | 'full' | 'fatal' | 'unusable';
/** `unknown`: the failed commit may turn out to be stored after a restart. */
export type Failure = { kind: FailureKind; message: string; unknown: boolean };

/** Call 0: the start, with the last position; -1: a failure that ends no call. */
export type Reply = { call: number; value: unknown } | { call: number; failure: Failure };

/** The thread could not carry out a call. `message` is one line for the log. */
export class Failed extends Error {
  readonly failure: Failure;
  constructor(failure: Failure) {
    super(failure.message);
    this.failure = failure;
  }
}
