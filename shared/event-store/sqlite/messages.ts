/** Tests alone set `maxPages`, to meet a full disk. */
export type WorkerOptions = {
  file: string;
  maxPages?: number | undefined;
  readOnly?: boolean | undefined;
};

/** Of the stream's expected last event; `revision` -1 for none. */
export type AppendJob = {
  stream: string;
  revision: number;
  hash: string;
  events: { id: string; hash: string; text: string }[];
};

/** Position, stream, revision, id, hash, log hash, text, log hash of the row before it. */
export type Row = [number, string, number, string, string, string, string, string | null];

export type AppendOutcome =
  | { first: number; logHashes: string[] }
  | { repeated: Row[] }
  | { conflict: string };

/** `busy`: try again; `fatal`: this process can never write again; `unusable`: cannot be opened. */
type FailureKind = 'busy' | 'full' | 'fatal' | 'unusable';
/** `unknown`: the failed commit may turn out to be stored after a restart. */
export type Failure = { kind: FailureKind; message: string; unknown: boolean };

/** Call 0: the start, with the last position; -1: a failure that ends no call. */
export type Reply = { call: number; value: unknown } | { call: number; failure: Failure };

export class Failed extends Error {
  readonly failure: Failure;
  constructor(failure: Failure) {
    super(failure.message);
    this.failure = failure;
  }
}
