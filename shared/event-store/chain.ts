/**
 * The two hash chains of the log. Each event's hash covers its stored text, which names the hash
 * before it in its stream; each row's log hash covers the log hash before it and the event's hash.
 *
 * What the chains show: an event that was changed, moved, swapped or taken out of the middle.
 * What they cannot show: a tail that was cut off, or a log rewritten from some event to its end with
 * new hashes. Against both, a head has to be kept outside of the file.
 */
import { hash } from 'node:crypto';

/** The previous hash of the first event of a stream, and of the first row of the log. */
export const GENESIS_HASH = '0'.repeat(64);

/** SHA-256 in hex of a text's UTF-8 bytes. */
export const hashOf = (text: string): string => hash('sha256', text);

export const linkLog = (logHashBefore: string, eventHash: string): string =>
  hashOf(logHashBefore + eventHash);

type Hashed = { hash?: string; logHash?: string };

/** Gives events their log hashes where the store keeps none; they come in the log's order, after `logHashBefore`. */
export const logHashes = (logHashBefore = GENESIS_HASH) => {
  let end = logHashBefore;
  return <E extends Hashed>(event: E): E & { logHash: string } => {
    end = event.logHash ?? linkLog(end, event.hash ?? '');
    return event.logHash === end ? (event as E & { logHash: string }) : { ...event, logHash: end };
  };
};

/** The end of a verified stretch of the log. */
export type LogEnd = { position: number; logHash: string };

export const LOG_START: LogEnd = { position: 0, logHash: GENESIS_HASH };
