/** Concurrent callers share one call; its result, also a failure, is reused for `goodForMs`. */
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
