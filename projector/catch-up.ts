/** Whether the read models have caught up with the log since the start, or since they were last lost. */
import type { ReadModelsReader } from '../shared/read-models/port.ts';
import type { Freshness } from './freshness.ts';

/** Not caught up at first. The projection gets the returned `freshness`, so that its losses are noted. */
export const trackCatchUp = (
  freshness: Freshness,
  readModels: Pick<ReadModelsReader, 'waitForRevision'>,
) => {
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
    /** As in the port of the read models, but false at once before they have caught up: GET folds streams then. */
    waitForRevision: async (
      ...request: Parameters<ReadModelsReader['waitForRevision']>
    ): Promise<boolean> => caughtUp && readModels.waitForRevision(...request),
    freshness: {
      ...freshness,
      lost: (): void => {
        lost();
        freshness.lost();
      },
    },
  };
};
