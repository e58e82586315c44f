/** Turns what the thread returns into the port's terms: rows into events, failures into errors. */
import { StoreFileUnusable, StoreUnavailable } from '../errors.ts';
import type { Position, RecordedEvent, StoredForm, UnreadableEvent } from '../port.ts';
import { decodeForm } from '../whole-stream.ts';
import { positionNumber } from './live-tail.ts';
import { Failed, type Row } from './messages.ts';

/** Throws the port's error for a failure of the thread, and any other error as it is. */
export function rethrow(error: unknown): never {
  if (!(error instanceof Failed)) throw error;
  const { message, failure } = error;
  throw failure.kind === 'unusable'
    ? new StoreFileUnusable(message)
    : new StoreUnavailable(message);
}

export function formOf(row: Row): StoredForm {
  const [number, stream, revision, id, hash, logHash, text, logHashBefore] = row;
  return { position: String(number), stream, revision, id, hash, logHash, text, logHashBefore };
}

export const decodeRow = (row: Row): RecordedEvent | UnreadableEvent => decodeForm(formOf(row));

/** Throws RangeError for a text that is no position. */
export const pageArgs = (
  after: Position | null,
  limit: number,
  upTo?: Position | null,
): [after: number, upTo: number, limit: number] => [
  positionNumber(after),
  upTo === undefined ? Number.MAX_SAFE_INTEGER : positionNumber(upTo),
  limit,
];

/**
 * The first row of a page that does not come after the row before it, in words: with two pages of the file in
 * each other's place, reading would go round in them.
 */
export const disorder = (rows: readonly Row[], after: number): string | undefined => {
  let before = after;
  for (const [position] of rows) {
    if (position <= before) return `event ${position} is stored after event ${before}`;
    before = position;
  }
  return undefined;
};
