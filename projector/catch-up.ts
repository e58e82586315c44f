/** Whether the read models have caught up with the log since the start, or since they were last lost. */
import type { Freshness } from './freshness.ts';

/** Not caught up at first. The projection gets the returned `freshness`, so that its losses are noted. */
export const trackCatchUp = (freshness: Freshness) => {
  const first = Promise.withResolvers<void>();
  let caughtUp = false;
  const lost = (): void => {
    caughtUp = false;
  };
  return {
    /** Resolves at the first catch-up. */
    first: first.promise,
    now: () => caughtUp,
    reached: (): void => {
      caughtUp = true;
      freshness.caughtUp();
      first.resolve();
    },
    lost,
    freshness: {
      ...freshness,
      lost: (): void => {
        lost();
        freshness.lost();
      },
    },
  };
};
