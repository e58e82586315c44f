import { StoreUnavailable, StreamNotWhole } from '../errors.ts';

export class Overdue extends Error {
  override name = 'Overdue';
}

/**
 * `not-sent`: nothing was carried out; `refused`: the server would reject it again; `deleted`: the
 * stream, for good; `overdue` and `unknown`: it may have been carried out.
 */
type CallOutcome =
  | 'conflict'
  | 'missing'
  | 'not-sent'
  | 'refused'
  | 'deleted'
  | 'overdue'
  | 'unknown';

const OUTCOME_BY_TYPE: Record<string, CallOutcome> = {
  'wrong-expected-version': 'conflict',
  'stream-not-found': 'missing',
  'not-leader': 'not-sent',
  'not-sent': 'not-sent',
  'access-denied': 'refused',
  'invalid-argument': 'refused',
  'stream-deleted': 'deleted',
  'maximum-append-size-exceeded': 'refused',
  'deadline-exceeded': 'overdue',
};
// gRPC's codes: some paths of the client give no type.
const OUTCOME_BY_CODE: Record<number, CallOutcome> = { 4: 'overdue', 7: 'refused', 16: 'refused' };
// The code does not tell "no connection" from a lost one, so here alone a library's text decides.
const NO_CONNECTION =
  /No connection established|ECONNREFUSED|Name resolution failed|Channel closed before call started|Failed to discover/;

export function callOutcomeOf(error: unknown): CallOutcome {
  if (error instanceof Overdue) return 'overdue';
  const { type, code, message } = error as { type?: string; code?: number; message?: string };
  if (NO_CONNECTION.test(message ?? '')) return 'not-sent';
  return OUTCOME_BY_TYPE[type ?? ''] ?? OUTCOME_BY_CODE[code ?? -1] ?? 'unknown';
}

const ADVICE: readonly (readonly [words: RegExp, advice: string])[] = [
  [
    /UNAUTHENTICATED/,
    'the server knows no such user, or with another password: put both right in EVENTSTOREDB_URL',
  ],
  [
    /PERMISSION_DENIED|Access ?Denied/i,
    'the user lacks the right to read $all, or to append: `npm run eventstoredb:rights -- <user>` gives both (docs/eventstoredb.md)',
  ],
  [
    /wrong version number/,
    'the server uses no TLS at this port: give it a certificate, or end EVENTSTOREDB_URL in ?tls=false',
  ],
  [
    /Last error: Failed to connect \(/,
    'the server takes no connection without TLS at this port: take tls=false out of EVENTSTOREDB_URL',
  ],
  [
    /self-signed certificate|unable to verify the first certificate|unable to get (local )?issuer/,
    "the server's certificate is not of a known authority: name that one's certificate in EVENTSTOREDB_URL, ?tlsCAFile=/path/ca.crt",
  ],
];

export function lineOf(error: unknown): string {
  const { message = '', type } = error as { message?: string; type?: string };
  const own = (message.split('\n')[0] ?? '').slice(0, 200);
  const advice = ADVICE.find(([words]) => words.test(message))?.[1];
  return `event store: ${advice ?? (own === '' ? (type ?? 'an unknown error') : own)}`;
}

/** The server knows the user: the client says the same of one that it does not know. */
export const isDenied = (error: unknown): boolean => {
  const { type, message = '' } = error as { type?: string; message?: string };
  return type === 'access-denied' && !message.includes('UNAUTHENTICATED');
};

/** The port's error for a call that changed nothing; `stream`: what it read. */
export const unavailable = (error: unknown, stream?: string): StoreUnavailable | StreamNotWhole => {
  if (error instanceof StoreUnavailable) return error;
  const { streamName = 'a stream' } = error as { streamName?: string };
  if (stream !== undefined && isDenied(error)) return notWhole(stream, 'refused');
  if (callOutcomeOf(error) !== 'deleted') return new StoreUnavailable(lineOf(error));
  return notWhole(stream ?? streamName, 'deleted');
};

/** Knows whether the server refuses the log: health reports it, and does not read $all itself. */
export function createRefusals() {
  let refusal: unknown;
  const note = (error?: unknown): void => {
    if (error === undefined) refusal = undefined;
    else if (callOutcomeOf(error) === 'refused') refusal = error;
  };
  return {
    /** Of a read of $all or a subscription to it: how it failed, or nothing once the server takes it. */
    note,
    /** Throws StoreUnavailable from a refused call on until one is answered. */
    rejectRefused(): void {
      if (refusal !== undefined) throw unavailable(refusal);
    },
  };
}

export type Refusals = ReturnType<typeof createRefusals>;

const NOT_WHOLE = {
  deleted: 'deleted at the server of the event store',
  cut: 'cut at the server of the event store',
  refused: "the server refuses this stream to the service's user: take $acl out of its metadata",
};

export const notWhole = (stream: string, what: keyof typeof NOT_WHOLE): StreamNotWhole =>
  new StreamNotWhole(stream, NOT_WHOLE[what]);

export type Call<T> = { response: Promise<T>; cancel?: () => void };
