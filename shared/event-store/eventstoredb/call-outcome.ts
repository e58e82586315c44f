/** What an error of EventStoreDB's client says about the outcome of the call it ended. */
import { StoreUnavailable, StreamNotWhole } from '../errors.ts';

/** The call was given up after its timeout; whether it was carried out is unknown. */
export class Overdue extends Error {
  override name = 'Overdue';
}

/**
 * What an error says: `conflict`, another revision; `missing`, no such stream; `not-sent`, the call
 * was not sent or the server rejected it, and it can be tried again; `refused`, the server would
 * reject it again; `deleted`, the stream was deleted for good; `overdue` and `unknown`, it may have
 * been carried out.
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
// gRPC's numbers: the same error comes with a type on one path of the client and without on another.
const OUTCOME_BY_CODE: Record<number, CallOutcome> = { 4: 'overdue', 7: 'refused', 16: 'refused' };
// The client's own words for a call that found no connection: its code is that of a connection lost
// on the way, whose call may have arrived. No other text of a library decides what is done.
const NO_CONNECTION =
  /No connection established|ECONNREFUSED|Name resolution failed|Channel closed before call started|Failed to discover/;

/** Classifies what a call of the client threw. */
export function callOutcomeOf(error: unknown): CallOutcome {
  if (error instanceof Overdue) return 'overdue';
  const { type, code, message } = error as { type?: string; code?: number; message?: string };
  if (NO_CONNECTION.test(message ?? '')) return 'not-sent';
  return OUTCOME_BY_TYPE[type ?? ''] ?? OUTCOME_BY_CODE[code ?? -1] ?? 'unknown';
}

/** What an operator has to do, in place of a library's words for it, by these words. */
const ADVICE: readonly (readonly [words: RegExp, advice: string])[] = [
  [
    /UNAUTHENTICATED/,
    'the server knows no such user, or with another password: put both right in EVENTSTOREDB_URL',
  ],
  [
    /PERMISSION_DENIED|Access Denied/i,
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

/** One line for the operator: what to do where that is known, else the first line of the error. */
export function lineOf(error: unknown): string {
  const { message = '', type } = error as { message?: string; type?: string };
  const own = (message.split('\n')[0] ?? '').slice(0, 200);
  const advice = ADVICE.find(([words]) => words.test(message))?.[1];
  return `event store: ${advice ?? (own === '' ? (type ?? 'an unknown error') : own)}`;
}

/** The error of the port for a call that changed nothing. */
export const unavailable = (error: unknown): StoreUnavailable | StreamNotWhole => {
  if (error instanceof StoreUnavailable) return error;
  if (callOutcomeOf(error) !== 'deleted') return new StoreUnavailable(lineOf(error));
  return notWhole((error as { streamName?: string }).streamName ?? 'a stream', 'deleted');
};

/** The error of the port for a stream that an administrator of the server deleted or cut. */
export const notWhole = (stream: string, what: 'deleted' | 'cut'): StreamNotWhole =>
  new StreamNotWhole(`${stream}: ${what} at the server of the event store`);

/** A call under way; `cancel` gives it up. */
export type Call<T> = { response: Promise<T>; cancel?: () => void };
