/** Turns what the thread returns into the port's terms: rows into events, failures into errors. */
import { hashOf } from '../chain.ts';
import { decode, isReadable, unreadableAt } from '../codec.ts';
import { StoreFileUnusable, StoreUnavailable } from '../errors.ts';
import type { RecordedEvent, UnreadableEvent } from '../port.ts';
import { Failed, type Row } from './messages.ts';

/** Throws the port's error for a failure of the thread, and any other error as it is. */
export function rethrow(error: unknown): never {
  if (!(error instanceof Failed)) throw error;
  const { message, failure } = error;
  throw failure.kind === 'unusable'
    ? new StoreFileUnusable(message)
    : new StoreUnavailable(message);
}

/** The row as an event. Never throws: a row that cannot be read becomes an UnreadableEvent. */
export function decodeRow([number, stream, revision, hash, logHash, text]: Row):
  | RecordedEvent
  | UnreadableEvent {
  const position = String(number);
  const place = { position, stream, revision, logHash };
  const event = decode({ ...place, hash, text });
  // A flipped bit can leave a text that reads well: another amount, another card.
  if (!isReadable(event) || hashOf(text) === hash) return event;
  return unreadableAt(place, 'its text does not have its hash');
}
