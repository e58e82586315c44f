/** A free permit goes to the merchants in turn: by age, one that wants much would delay the others. */
export const createPermits = (max: number, ofOneMax: number) => {
  let free = max;
  const held = new Map<string, number>();
  /** By merchant; whose turn is next stands first. */
  const waiting = new Map<string, Set<() => void>>();

  const take = (merchantId: string): boolean => {
    const own = held.get(merchantId) ?? 0;
    if (free === 0 || own >= ofOneMax) return false;
    free -= 1;
    held.set(merchantId, own + 1);
    return true;
  };

  const waitForTurn = async (merchantId: string, signal: AbortSignal): Promise<void> => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const own = waiting.get(merchantId) ?? new Set();
    waiting.set(merchantId, own.add(resolve));
    const leave = (): void => {
      // One that does not wait any more was given its permit.
      if (!own.delete(resolve)) return;
      if (own.size === 0) waiting.delete(merchantId);
      reject(signal.reason);
    };
    signal.addEventListener('abort', leave, { once: true });
    await promise;
    signal.removeEventListener('abort', leave);
  };

  const giveBack = (merchantId: string): void => {
    free += 1;
    const left = (held.get(merchantId) ?? 1) - 1;
    if (left === 0) held.delete(merchantId);
    else held.set(merchantId, left);
    for (const [next, own] of waiting) {
      const [begin] = own;
      if (begin === undefined || !take(next)) continue;
      own.delete(begin);
      waiting.delete(next);
      if (own.size > 0) waiting.set(next, own);
      begin();
      return;
    }
  };

  return {
    /** Throws the signal's reason where it is aborted before there is a permit. */
    with: async <T>(
      merchantId: string,
      signal: AbortSignal,
      work: () => Promise<T>,
    ): Promise<T> => {
      signal.throwIfAborted();
      if (!take(merchantId)) await waitForTurn(merchantId, signal);
      try {
        return await work();
      } finally {
        giveBack(merchantId);
      }
    },
  };
};

/**
 * `well`: it responded to the last request, with any status; `silent`: no request ended of late;
 * `doubtful`: it did not respond to the last one, or is FAILING.
 */
export type Standing = 'well' | 'silent' | 'doubtful';

const PLACES = 256;
const SILENT_PLACES = 128;
const DOUBTFUL_PLACES = 64;
const MERCHANT_PART = 1 / 16;

/** A silent endpoint holds no place for longer (gaps §20). */
export const responseMsMax = (standing: Standing): number =>
  standing === 'silent' ? 3_000 : 15_000;

/** For so long a response, or its lack, says something about the next one. */
export const SILENT_AFTER_MS = 600_000;

const shared = (max: number) => createPermits(max, max * MERCHANT_PART);

/** Well endpoints find a place however many others hang. */
export const createPlaces = () => {
  const all = shared(PLACES);
  const parts = { silent: shared(SILENT_PLACES), doubtful: shared(DOUBTFUL_PLACES) };
  return {
    with: <T>(
      standing: Standing,
      merchantId: string,
      signal: AbortSignal,
      request: () => Promise<T>,
    ): Promise<T> => {
      const inAny = () => all.with(merchantId, signal, request);
      return standing === 'well' ? inAny() : parts[standing].with(merchantId, signal, inAny);
    },
  };
};

export type Places = ReturnType<typeof createPlaces>;
