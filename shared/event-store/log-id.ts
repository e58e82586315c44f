import { randomUUID } from 'node:crypto';
import type { EventStore } from './port.ts';

const KEY = 'log-id';

/**
 * The id of a log, by which a kept manifest names it: a UUID made at its first use, the same in a copy. It is
 * not derived from an event, so a log that was written anew from its first event on is still the log that
 * the manifest names. Throws StoreUnavailable.
 */
export const logIdOf = (store: Pick<EventStore, 'claimMeta'>): Promise<string> =>
  store.claimMeta(KEY, randomUUID());
