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
const PERMISSION_DENIED = 7;
const UNAUTHENTICATED = 16;

type CallError = { type?: string; code?: number; message?: string };

// Here and in TLS_ADVICE text alone tells. gRPC gives code 14 without metadata to a call without a connection, as to
// one that lost it, and keeps of the cause its message (@grpc/grpc-js 1.14.7: load-balancer-pick-first, resolver-dns,
// internal-channel, transport); the client throws a plain Error (@eventstore/db-client 6.2.1: discovery).
const NO_CONNECTION =
  /No connection established|Name resolution failed|Channel closed before call started|Failed to discover/;

export function callOutcomeOf(error: unknown): CallOutcome {
  if (error instanceof Overdue) return 'overdue';
  const { type, code, message } = error as CallError;
  if (NO_CONNECTION.test(message ?? '')) return 'not-sent';
  return OUTCOME_BY_TYPE[type ?? ''] ?? OUTCOME_BY_CODE[code ?? -1] ?? 'unknown';
}

const UNKNOWN_USER =
  'the server knows no such user, or with another password: put both right in EVENTSTOREDB_URL';
const NO_RIGHT =
  'the user lacks the right to read $all, or to append: `npm run eventstoredb:rights -- <user>` gives both (docs/eventstoredb.md)';

const TLS_ADVICE: readonly (readonly [words: RegExp, advice: string])[] = [
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

const adviceFor = ({ type, code, message = '' }: CallError): string | undefined => {
  if (code === UNAUTHENTICATED) return UNKNOWN_USER;
  if (type === 'access-denied' || code === PERMISSION_DENIED) return NO_RIGHT;
  return TLS_ADVICE.find(([words]) => words.test(message))?.[1];
};

export function lineOf(error: unknown): string {
  const { message = '', type } = error as CallError;
  const own = (message.split('\n')[0] ?? '').slice(0, 200);
  return `event store: ${adviceFor(error as CallError) ?? (own === '' ? (type ?? 'an unknown error') : own)}`;
}

/** The server knows the user: the client gives the same type to one that it does not know. */
export const isDenied = (error: unknown): boolean => {
  const { type, code } = error as CallError;
  return type === 'access-denied' && code !== UNAUTHENTICATED;
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
