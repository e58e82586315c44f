/**
 * Time-outs, waits and jitter, for every loop that tries again. The back-off is cockatiel's. Its
 * time-out is not used: it makes a policy, an abort signal and its emitters, once for every call,
 * for here the limit is what is left of a budget.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { halfJitterGenerator } from 'cockatiel';

/** Which part of a wait is left to chance, as factors of it. */
export type Jitter = { least: number; most: number };

/** Around the wait itself: for those whose mean is what counts. */
export const AROUND: Jitter = { least: 0.5, most: 1.5 };
/** For waits that somebody reads as they are set. */
export const SLIGHTLY: Jitter = { least: 0.9, most: 1.1 };

/** `ms` times a random factor, so that those who failed together do not come back together. */
export const jittered = (ms: number, { least, most }: Jitter): number =>
  ms * (least + Math.random() * (most - least));

/** The bounds of a wait that doubles, in milliseconds. */
export type BackOff = { minMs: number; maxMs: number };

/**
 * How long to wait after so many failures in a row, in milliseconds: `minMs` doubled for each of
 * them, `maxMs` at most, of which half is left to chance.
 */
export const backOffMs = ({ minMs, maxMs }: BackOff, failures: number): number => {
  const bounds = { initialDelay: minMs, maxDelay: maxMs, exponent: 2 };
  return halfJitterGenerator(failures, { ...bounds, generator: halfJitterGenerator })[0];
};

/** Waits, or until the signal is aborted; never rejects. */
export const pause = (ms: number, signal?: AbortSignal): Promise<void> =>
  delay(ms, undefined, { signal }).catch(() => undefined);

/**
 * Waits for work that is under way, `ms` milliseconds at most. Rejects with what `late` makes when
 * the time is over, and with the signal's reason when it is aborted. What the work does after that
 * is heard by nobody.
 */
export const within = async <T>(
  ms: number,
  work: Promise<T>,
  late: () => Error,
  signal?: AbortSignal,
): Promise<T> => {
  const { promise: over, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(late()), Math.max(ms, 1));
  const leave = (): void => reject(signal?.reason);
  signal?.addEventListener('abort', leave);
  if (signal?.aborted) leave();
  try {
    return await Promise.race([work, over]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', leave);
  }
};
