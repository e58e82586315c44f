/** Turns what the thread returns into the port's terms: rows into events, failures into errors. */
import { decodeForm } from '../decode-form.ts';
import { StoreFileUnusable, StoreUnavailable } from '../errors.ts';
import type { Position, RecordedEvent, StoredForm, UnreadableEvent } from '../port.ts';
import type { Link } from '../verify-chain.ts';
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

/** The row as an event, as `decodeForm` gives it. */
export function decodeRow(row: Row): RecordedEvent | UnreadableEvent {
  const [number, stream, revision, hash, logHash, text, logHashBefore] = row;
  const position = String(number);
  return decodeForm({ position, stream, revision, hash, logHash, text, logHashBefore });
}

/** A page as the file's statements take it. Throws RangeError for a text that is no position. */
export const pageArgs = (after: Position | null, limit: number, upTo?: Position | null) => ({
  after: positionNumber(after),
  upTo: upTo === undefined ? Number.MAX_SAFE_INTEGER : positionNumber(upTo),
  limit,
});

/** A row with all that its chains rest on, as the port gives it. */
export const storedForm = (row: Link<number>): StoredForm => ({
  ...row,
  position: String(row.position),
});

/** A row without what comes before it: position, stream, revision, id, hash, log hash, text. */
export type LeanRow = [number, string, number, string, string, string, string];

/**
 * The first row of a page after a position that does not come after the one before it, in words: of two
 * pages of the file in each other's place, the page after the last row would begin again.
 */
export const disorder = (rows: readonly LeanRow[], after: number): string | undefined => {
  let before = after;
  for (const [position] of rows) {
    if (position <= before) return `event ${position} is stored after event ${before}`;
    before = position;
  }
  return undefined;
};

/**
 * The rows of a page as stored forms. The log hash before a row is that of the row before it in the page;
 * for the first one, and behind a gap, `logHashAt` gives that of a position, null where no event is.
 */
export const leanForms = (
  rows: readonly LeanRow[],
  logHashAt: (position: number) => string | null,
): StoredForm[] => {
  let before: LeanRow | undefined;
  return rows.map((row) => {
    const [position, stream, revision, id, hash, logHash, text] = row;
    const isNext = before !== undefined && before[0] === position - 1;
    const logHashBefore = isNext ? (before?.[5] ?? null) : logHashAt(position - 1);
    before = row;
    return { position: String(position), stream, revision, id, hash, logHash, text, logHashBefore };
  });
};
