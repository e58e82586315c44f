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
// on the way, whose call may have arrived. No other text of a library decides anything.
const NO_CONNECTION =
  /No connection established|ECONNREFUSED|Name resolution failed|Channel closed before call started|Failed to discover/;

/** Classifies what a call of the client threw. */
export function callOutcomeOf(error: unknown): CallOutcome {
  if (error instanceof Overdue) return 'overdue';
  const { type, code, message } = error as { type?: string; code?: number; message?: string };
  if (NO_CONNECTION.test(message ?? '')) return 'not-sent';
  return OUTCOME_BY_TYPE[type ?? ''] ?? OUTCOME_BY_CODE[code ?? -1] ?? 'unknown';
}

/** One line for the log: the first line of the error's message, else its type. */
export function lineOf(error: unknown): string {
  const { message = '', type } = error as { message?: string; type?: string };
  const line = (message.split('\n')[0] ?? '').slice(0, 200);
  return `event store: ${line === '' ? (type ?? 'an unknown error') : line}`;
}

/** The error of the port for a call that changed nothing. */
export const unavailable = (error: unknown): StoreUnavailable | StreamNotWhole => {
  if (error instanceof StoreUnavailable) return error;
  // seeded bug: tombstone-named
  if (callOutcomeOf(error) !== 'deleted') return new StoreUnavailable(lineOf(error));
  return notWhole((error as { streamName?: string }).streamName ?? 'a stream', 'deleted');
};

/** The error of the port for a stream that an administrator of the server deleted or cut. */
export const notWhole = (stream: string, what: 'deleted' | 'cut'): StreamNotWhole =>
  new StreamNotWhole(`${stream}: ${what} at the server of the event store`);

/** A call under way; `cancel` gives it up. */
export type Call<T> = { response: Promise<T>; cancel?: () => void };
