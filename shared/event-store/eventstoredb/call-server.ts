/**
 * What stands around every call to EventStoreDB: a time-out of our own (the client has calls that
 * never end), what an error says about the outcome of the call, and the pauses between two tries.
 */
import { StoreUnavailable } from '../errors.ts';

/** The call was given up; what it did is unknown. */
export class Overdue extends Error {
  override name = 'Overdue';
}

/**
 * What an error says: `conflict`, another revision; `missing`, no such stream; `not-sent`, the call
 * never left or was turned away, and can be tried again; `refused`, turned away for good; `overdue`
 * and `unknown`, it may have been carried out.
 */
export type CallOutcome = 'conflict' | 'missing' | 'not-sent' | 'refused' | 'overdue' | 'unknown';

const OUTCOME_BY_TYPE: Record<string, CallOutcome> = {
  'wrong-expected-version': 'conflict',
  'stream-not-found': 'missing',
  'not-leader': 'not-sent',
  'access-denied': 'refused',
  'invalid-argument': 'refused',
  'stream-deleted': 'refused',
  'maximum-append-size-exceeded': 'refused',
  'deadline-exceeded': 'overdue',
};
// gRPC's numbers: the same error comes with a type on one path of the client and without on another.
const OUTCOME_BY_CODE: Record<number, CallOutcome> = { 4: 'overdue', 7: 'refused', 16: 'refused' };
// The client's own words for a call that found no connection. A connection lost on the way reads
// otherwise, and its call may have arrived.
const NO_CONNECTION =
  /No connection established|ECONNREFUSED|Name resolution failed|Channel closed before call started|Failed to discover/;

/** Classifies what a call of the client threw. */
export function callOutcomeOf(error: unknown): CallOutcome {
  if (error instanceof Overdue) return 'overdue';
  const { type, code, message } = error as { type?: string; code?: number; message?: string };
  if (NO_CONNECTION.test(message ?? '')) return 'not-sent';
  return OUTCOME_BY_TYPE[type ?? ''] ?? OUTCOME_BY_CODE[code ?? -1] ?? 'unknown';
}

/** One line for the log: the code or type, and the server's words without anything after a line. */
export function lineOf(error: unknown): string {
  const { message = '', type } = error as { message?: string; type?: string };
  const line = (message.split('\n')[0] ?? '').slice(0, 200);
  return `event store: ${line === '' ? (type ?? 'an unknown error') : line}`;
}

/** The error of the port for a call that changed nothing. */
export const unavailable = (error: unknown): StoreUnavailable =>
  error instanceof StoreUnavailable ? error : new StoreUnavailable(lineOf(error));

/** A call under way, and how to give it up. */
export type Call<T> = { response: Promise<T>; cancel?: () => void };

/** Waits for a call, at most so long. What it does after that is heard by nobody, and harms nobody. */
export async function within<T>(ms: number, { response, cancel }: Call<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const overdue = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Overdue(`no answer within ${Math.round(ms)} ms`)),
      Math.max(ms, 1),
    );
  });
  response.catch(() => undefined);
  try {
    return await Promise.race([response, overdue]);
  } catch (error) {
    if (error instanceof Overdue) cancel?.();
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** Between half of `ms` and all of it, so that those who failed together do not come back so. */
export const jittered = (ms: number): number => ms * (0.5 + Math.random() / 2);

/** Waits, or until the signal says stop; never rejects. */
export const pause = (ms: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener('abort', done);
  });
