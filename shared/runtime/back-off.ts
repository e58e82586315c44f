/**
 * Time limits, waits and jitter, for every loop that tries again. The back-off is cockatiel's. Its
 * timeout is not used: a timeout policy has one fixed limit, here each call has its own (what is
 * left of a budget), and a new policy with its abort signal and emitters for each call is slow.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { halfJitterGenerator } from 'cockatiel';

/** The range of the random factor that a wait is multiplied by. */
type Jitter = { least: number; most: number };

/** For waits of which only the mean matters. */
export const WIDE_JITTER: Jitter = { least: 0.5, most: 1.5 };
/** For waits that an operator sets or reads, and expects to be about as long as written. */
export const NARROW_JITTER: Jitter = { least: 0.9, most: 1.1 };

/** `ms` times a random factor, so that loops which failed together do not retry together. */
export const jittered = (ms: number, { least, most }: Jitter): number =>
  ms * (least + Math.random() * (most - least));

/** The bounds of a wait that doubles, in milliseconds. */
export type BackOff = { minMs: number; maxMs: number };

/**
 * How long to wait after so many failures in a row, in milliseconds: `minMs` doubled for each
 * failure, `maxMs` at most; half of the wait is random.
 */
export const backOffMs = ({ minMs, maxMs }: BackOff, failures: number): number => {
  const bounds = { initialDelay: minMs, maxDelay: maxMs, exponent: 2 };
  return halfJitterGenerator(failures, { ...bounds, generator: halfJitterGenerator })[0];
};

/** Waits `ms` milliseconds, or until the signal is aborted; never rejects. */
export const pause = (ms: number, signal?: AbortSignal): Promise<void> =>
  delay(ms, undefined, { signal }).catch(() => undefined);

/**
 * Waits for work that has begun, `ms` milliseconds at most. Rejects with the error of `late` when
 * the time is over, and with the signal's reason when it is aborted. The work itself goes on; its
 * later result or error is ignored.
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
