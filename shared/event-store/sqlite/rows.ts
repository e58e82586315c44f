/** Turns what the thread returns into the port's terms: rows into events, failures into errors. */
import { decode, isReadable, unreadableAt } from '../codec.ts';
import { StoreFileUnusable, StoreUnavailable } from '../errors.ts';
import type { RecordedEvent, UnreadableEvent } from '../port.ts';
import { hashReason, linkReason } from '../verify-chain.ts';
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
export function decodeRow(row: Row): RecordedEvent | UnreadableEvent {
  const [number, stream, revision, hash, logHash, text, logHashBefore] = row;
  const place = { position: String(number), stream, revision, hash, logHash };
  const event = decode({ ...place, text });
  if (!isReadable(event)) return event;
  // A text that was changed can read well: another amount, another card.
  const reason = hashReason({ text, hash }) ?? linkReason({ hash, logHash, logHashBefore });
  return reason === undefined ? event : unreadableAt(place, reason);
}
