/** A number of permits, taken in the order of asking: for requests and for pages of the log. */
export type Permits = {
  /** Runs work with a permit. Throws the signal's reason where it is aborted first. */
  with<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T>;
};

export const createPermits = (max: number): Permits => {
  let free = max;
  const waiting = new Set<() => void>();

  const take = async (signal: AbortSignal): Promise<void> => {
    signal.throwIfAborted();
    if (free > 0) {
      free -= 1;
      return;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const leave = (): void => {
      waiting.delete(resolve);
      reject(signal.reason);
    };
    signal.addEventListener('abort', leave, { once: true });
    waiting.add(resolve);
    await promise;
    signal.removeEventListener('abort', leave);
  };

  const giveBack = (): void => {
    const [next] = waiting;
    if (next === undefined) free += 1;
    else {
      waiting.delete(next);
      next();
    }
  };

  return {
    with: async (signal, work) => {
      await take(signal);
      try {
        return await work();
      } finally {
        giveBack();
      }
    },
  };
};
