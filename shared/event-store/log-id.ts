/** The name of a log, by which a manifest that was kept elsewhere says which log it is of. */
import { randomUUID } from 'node:crypto';
import type { EventStore } from './port.ts';

const KEY = 'log-id';

/**
 * The id of a log, a UUID that is made at its first use and never changes: a copy of the log has the
 * same one, another log another. It is not derived from an event, so that a log which was written
 * anew from its first event on is still the log that a manifest names. Throws StoreUnavailable.
 */
export const logIdOf = (store: Pick<EventStore, 'claimMeta'>): Promise<string> =>
  store.claimMeta(KEY, randomUUID());
