/**
 * The hash chains show a changed, moved or missing event, but neither a cut tail nor a log
 * rewritten to its end: a head kept outside shows those.
 */
import { hash, randomUUID } from 'node:crypto';
import type { EventStore } from './port.ts';

export const GENESIS_HASH = '0'.repeat(64);

export const hashOf = (text: string): string => hash('sha256', text);

export const linkLog = (logHashBefore: string, eventHash: string): string =>
  hashOf(logHashBefore + eventHash);

type Hashed = { hash?: string; logHash?: string };

/** Adds log hashes where the store keeps none, to events in the log's order. */
export const logHashes = (logHashBefore = GENESIS_HASH) => {
  let end = logHashBefore;
  return <E extends Hashed>(event: E): E & { logHash: string } => {
    end = event.logHash ?? linkLog(end, event.hash ?? '');
    return event.logHash === end ? (event as E & { logHash: string }) : { ...event, logHash: end };
  };
};

export type LogEnd = { position: number; logHash: string };

export const LOG_START: LogEnd = { position: 0, logHash: GENESIS_HASH };

const KEY = 'log-id';

/** The UUID by which a kept manifest names a log, the same in a copy. Throws StoreUnavailable. */
export const logIdOf = (store: Pick<EventStore, 'claimMeta'>): Promise<string> =>
  store.claimMeta(KEY, randomUUID());
