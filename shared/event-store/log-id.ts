import { randomUUID } from 'node:crypto';
import type { EventStore } from './port.ts';

const KEY = 'log-id';

/**
 * The UUID by which a kept manifest names a log; the same in a copy, and after a rewrite from the
 * first event, because no event gives it. Throws StoreUnavailable.
 */
export const logIdOf = (store: Pick<EventStore, 'claimMeta'>): Promise<string> =>
  store.claimMeta(KEY, randomUUID());
