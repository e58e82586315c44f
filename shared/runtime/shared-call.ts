/** One call for many who want its value at once. */

/**
 * Wraps a call: while one is under way everybody waits for it, and what came of it, a failure as well,
 * is good for `goodForMs` from then on. `nowMs` only goes forward.
 */
export const shareCall = <T>(
  call: () => Promise<T>,
  goodForMs: number,
  nowMs = (): number => performance.now(),
): (() => Promise<T>) => {
  let latest: Promise<T> | undefined;
  let goodUntilMs = 0;
  return () => {
    if (latest !== undefined && nowMs() < goodUntilMs) return latest;
    goodUntilMs = Number.POSITIVE_INFINITY;
    latest = call().finally(() => {
      goodUntilMs = nowMs() + goodForMs;
    });
    return latest;
  };
};
