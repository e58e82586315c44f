/**
 * The messages between the event store (event-store.ts) and the thread that owns its file (worker.ts).
 */
import type { HashesAt } from '../port.ts';

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

/**
 * The first position of a stored append and its links in the log, the rows of one that was stored before,
 * or why it conflicts.
 */
export type AppendOutcome =
  | { first: number; logHashes: string[] }
  | { repeated: Row[] }
  | { conflict: string };

/**
 * `busy`: try again later; `full`: the disk has no space; `fatal`: this process can never write to the
 * file again and must exit; `unusable`: the file cannot be opened.
 */
type FailureKind = 'busy' | 'full' | 'fatal' | 'unusable';
/** `unknown` is true when the failed commit may turn out to be stored after a restart. */
export type Failure = { kind: FailureKind; message: string; unknown: boolean };

/** Up to `limit` events after one position and up to another. */
type PageArgs = { after: number; upTo: number; limit: number };

/** The calls of the thread: their arguments and their responses. */
export type Calls = {
  append: { args: { jobs: AppendJob[] }; response: AppendOutcome[] };
  readStream: { args: { stream: string }; response: Row[] };
  lastRevision: { args: { stream: string }; response: number | null };
  readAll: { args: PageArgs; response: Row[] };
  hashAt: { args: { position: number }; response: HashesAt | null };
  /** The time of the first event after a position. */
  timeAfter: { args: { after: number }; response: string | null };
  claimMeta: { args: { key: string; value: string }; response: string };
  /** A small durable write that changes nothing: whether the disk takes events. */
  probe: { args: object; response: null };
  /** Ends the thread, after every call before it. */
  close: { args: object; response: null };
};
/** The name of a call. */
export type CallName = keyof Calls;

/** A call of the thread. Calls are numbered from 1. */
export type Request = {
  [N in CallName]: { call: number; name: N; args: Calls[N]['args'] };
}[CallName];

/** The reply to a call. 0: the start, with the last position; -1: a failure that ends no call. */
export type Reply = { call: number; value: unknown } | { call: number; failure: Failure };

/** The thread could not carry out a call. `message` is one line for the log. */
export class Failed extends Error {
  readonly failure: Failure;
  constructor(failure: Failure) {
    super(failure.message);
    this.failure = failure;
  }
}
