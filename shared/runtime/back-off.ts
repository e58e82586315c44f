/** The back-off is cockatiel's; not its timeout, because each call here has its own limit. */
import { setTimeout as delay } from 'node:timers/promises';
import { halfJitterGenerator } from 'cockatiel';

type Jitter = { least: number; most: number };

export const WIDE_JITTER: Jitter = { least: 0.5, most: 1.5 };
/** For waits that an operator sets or reads. */
export const NARROW_JITTER: Jitter = { least: 0.9, most: 1.1 };

/** Loops that failed together then do not retry together. */
export const jittered = (ms: number, { least, most }: Jitter): number =>
  ms * (least + Math.random() * (most - least));

export type BackOff = { minMs: number; maxMs: number };

/** Doubled for each failure in a row; half of it is random. */
export const backOffMs = ({ minMs, maxMs }: BackOff, failures: number): number => {
  const bounds = { initialDelay: minMs, maxDelay: maxMs, exponent: 2 };
  return halfJitterGenerator(failures, { ...bounds, generator: halfJitterGenerator })[0];
};

export const pause = (ms: number, signal?: AbortSignal): Promise<void> =>
  delay(ms, undefined, { signal }).catch(() => undefined);

/** Rejects with `late` after `ms`, or with the reason of `signal`; the work itself continues. */
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

/** Once; the result cancels it. Tests pass a manual clock. */
export type StartTimer = (work: () => void, delayMs: number) => () => void;

export const startTimer: StartTimer = (work, delayMs) => {
  const timer = setTimeout(work, delayMs);
  return () => clearTimeout(timer);
};

export const startBackgroundTimer: StartTimer = (work, delayMs) => {
  const timer = setTimeout(work, delayMs).unref();
  return () => clearTimeout(timer);
};
