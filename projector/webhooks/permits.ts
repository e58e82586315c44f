/**
 * A number of permits that merchants share: for requests and for pages of the log. A merchant has
 * `ofOneMax` at a time. A free one goes to the merchants in turn, and within one in the order of asking,
 * so that none waits longer for how much another wants; a bulkhead with one queue would give by age.
 */
export type Permits = {
  /** Runs work with a permit. Throws the signal's reason where it is aborted first. */
  with<T>(merchantId: string, signal: AbortSignal, work: () => Promise<T>): Promise<T>;
};

export const createPermits = (max: number, ofOneMax: number): Permits => {
  let free = max;
  const held = new Map<string, number>();
  /** By merchant, the one whose turn is next first. */
  const waiting = new Map<string, Set<() => void>>();

  const heldBy = (merchantId: string): number => held.get(merchantId) ?? 0;
  const mayTake = (merchantId: string): boolean => free > 0 && heldBy(merchantId) < ofOneMax;

  const take = (merchantId: string): void => {
    free -= 1;
    held.set(merchantId, heldBy(merchantId) + 1);
  };

  const waitForTurn = async (merchantId: string, signal: AbortSignal): Promise<void> => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const own = waiting.get(merchantId) ?? new Set();
    waiting.set(merchantId, own.add(resolve));
    const leave = (): void => {
      // One that is not there any more was given its permit.
      if (!own.delete(resolve)) return;
      if (own.size === 0) waiting.delete(merchantId);
      reject(signal.reason);
    };
    signal.addEventListener('abort', leave, { once: true });
    await promise;
    signal.removeEventListener('abort', leave);
  };

  const giveOn = (): void => {
    for (const [merchantId, own] of waiting) {
      const [next] = own;
      if (next === undefined || !mayTake(merchantId)) continue;
      own.delete(next);
      waiting.delete(merchantId);
      if (own.size > 0) waiting.set(merchantId, own);
      take(merchantId);
      next();
      return;
    }
  };

  const giveBack = (merchantId: string): void => {
    free += 1;
    if (heldBy(merchantId) === 1) held.delete(merchantId);
    else held.set(merchantId, heldBy(merchantId) - 1);
    giveOn();
  };

  return {
    with: async (merchantId, signal, work) => {
      signal.throwIfAborted();
      if (mayTake(merchantId)) take(merchantId);
      else await waitForTurn(merchantId, signal);
      try {
        return await work();
      } finally {
        giveBack(merchantId);
      }
    },
  };
};
