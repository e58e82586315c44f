/**
 * Places that merchants share, given to them in turn (gaps §27). An eighth is a merchant's part: within it the
 * merchant gets any free place, beyond it one that no merchant within its part waits for, and never the last.
 */
const PARTS = 8;
/** A token of all merchants: one place next to the shared ones is its own. */
const ALL_MERCHANTS = '*';

/** A merchant never holds more than `ofOneMax`, also while no other waits. */
export const createTurns = (places: number, ofOneMax: number = places) => {
  const part = Math.max(1, Math.floor(places / PARTS));
  let free = places;
  const held = new Map<string, number>();
  /** By merchant; whose turn is next stands first. */
  const waiting = new Map<string, Set<() => void>>();

  const sharedOf = (merchantId: string): number => {
    const own = held.get(merchantId) ?? 0;
    return merchantId === ALL_MERCHANTS ? Math.max(0, own - 1) : own;
  };

  const fits = (merchantId: string): boolean => {
    if (merchantId === ALL_MERCHANTS && !held.has(merchantId)) return true;
    const own = sharedOf(merchantId);
    return own < ofOneMax && free > (own < part ? 0 : 1);
  };

  /** Whether it fits or not; a negative amount gives places back. */
  const add = (merchantId: string, amount: number): void => {
    const before = sharedOf(merchantId);
    const own = (held.get(merchantId) ?? 0) + amount;
    if (own === 0) held.delete(merchantId);
    else held.set(merchantId, own);
    free += before - sharedOf(merchantId);
  };

  const take = (merchantId: string): boolean => {
    if (!fits(merchantId)) return false;
    add(merchantId, 1);
    return true;
  };

  const nextInTurn = (): string | undefined => {
    let beyondPart: string | undefined;
    for (const merchantId of waiting.keys()) {
      if (!fits(merchantId)) continue;
      if (sharedOf(merchantId) < part) return merchantId;
      beyondPart ??= merchantId;
    }
    return beyondPart;
  };

  const giveBack = (merchantId: string): void => {
    add(merchantId, -1);
    const next = nextInTurn();
    const own = next === undefined ? undefined : waiting.get(next);
    if (next === undefined || own === undefined) return;
    waiting.delete(next);
    const [begin] = own;
    if (begin !== undefined) own.delete(begin);
    if (own.size > 0) waiting.set(next, own);
    add(next, 1);
    begin?.();
  };

  /** For a place where none could be taken. Throws the signal's reason where it is aborted first. */
  const wait = async (merchantId: string, signal?: AbortSignal): Promise<void> => {
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const own = waiting.get(merchantId) ?? new Set();
    waiting.set(merchantId, own.add(resolve));
    const leave = (): void => {
      // One that does not wait any more was given its place.
      if (!own.delete(resolve)) return;
      if (own.size === 0) waiting.delete(merchantId);
      reject(signal?.reason);
    };
    signal?.addEventListener('abort', leave, { once: true });
    await promise;
    signal?.removeEventListener('abort', leave);
  };

  return {
    fits,
    add,
    take,
    wait,
    giveBack,
    taken: (): number => [...held.values()].reduce((sum, own) => sum + own, 0),
    takenBy: (merchantId: string): number => held.get(merchantId) ?? 0,
    /** Throws as `wait` and `work` do. */
    with: async <T>(
      merchantId: string,
      signal: AbortSignal | undefined,
      work: () => Promise<T>,
    ): Promise<T> => {
      signal?.throwIfAborted();
      if (!take(merchantId)) await wait(merchantId, signal);
      try {
        return await work();
      } finally {
        giveBack(merchantId);
      }
    },
  };
};
