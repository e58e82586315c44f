/**
 * The two hash chains of the log. Each event's hash covers its stored text, which names the hash
 * before it in its stream; each row's log hash covers the log hash before it and the event's hash.
 *
 * What the chains show: an event that was changed, moved, swapped or taken out of the middle.
 * What they cannot show: a tail that was cut off, or a log rewritten from some event to its end by
 * somebody who computes hashes as well. Against both, a head has to be kept outside of the file.
 */
import { hash } from 'node:crypto';
import { jsonFieldsOf } from '../runtime/json-fields.ts';

/** What stands before the first event of a stream, and before the first event of the log. */
export const GENESIS_HASH = '0'.repeat(64);

/** SHA-256 in hex of a text's UTF-8 bytes: the hash of an event over its stored text. */
export const hashOf = (text: string): string => hash('sha256', text);

/** The log hash of a row, from that of the row before it and the hash of its event. */
export const linkLog = (logHashBefore: string, eventHash: string): string =>
  hashOf(logHashBefore + eventHash);

/** A row of the log as it is stored, and what stands before it in its stream. */
export type ChainRow = {
  position: number;
  stream: string;
  revision: number;
  id: string;
  hash: string;
  logHash: string;
  /** The canonical JSON that was hashed. */
  text: string;
  /** The hash of the stream's row at `revision - 1`, or null when there is none. */
  hashBefore: string | null;
};

/** The end of a verified stretch of the log. */
export type LogEnd = { position: number; logHash: string };

/** Where the empty log ends. */
export const LOG_START: LogEnd = { position: 0, logHash: GENESIS_HASH };

/** The first row that does not fit, and why. */
export type ChainBreak = {
  position: number;
  stream: string;
  revision: number;
  reason: string;
};

/** Why a row is not what was stored, or does not follow `hashBefore` in its stream; else undefined. */
export function streamReason(row: Omit<ChainRow, 'position' | 'logHash'>): string | undefined {
  if (hashOf(row.text) !== row.hash) return 'its text does not have its hash';
  const stored = jsonFieldsOf(row.text);
  const named = [stored.stream, stored.revision, stored.id];
  if (named[0] !== row.stream || named[1] !== row.revision || named[2] !== row.id) {
    return 'its text belongs to another place';
  }
  if (row.revision > 0 && row.hashBefore === null) return 'the event before it is missing';
  if (stored.previousHash !== (row.hashBefore ?? GENESIS_HASH)) {
    return 'it does not follow the event before it';
  }
  return undefined;
}

function logReason(row: ChainRow, before: LogEnd): string | undefined {
  if (row.position !== before.position + 1) return `position ${before.position + 1} is missing`;
  const reason = streamReason(row);
  if (reason !== undefined) return reason;
  // seeded bug: log-linked
  if (linkLog(before.logHash, row.hash) !== row.logHash) return 'it does not follow in the log';
  return undefined;
}

/**
 * Verifies rows in the order of the log, the first of which must follow `before`. Needs the memory
 * of one row, so it can be fed a whole log in pages: each page starts from the end of the last.
 */
export function verifyLog(
  rows: Iterable<ChainRow>,
  before: LogEnd = LOG_START,
): { end: LogEnd } | { broken: ChainBreak } {
  let end = before;
  for (const row of rows) {
    const reason = logReason(row, end);
    const { position, stream, revision, logHash } = row;
    if (reason !== undefined) return { broken: { position, stream, revision, reason } };
    end = { position, logHash };
  }
  return { end };
}

/** One line that names the place of a break, for an operator. */
export const describeBreak = ({ position, stream, revision, reason }: ChainBreak): string =>
  `position ${position} (stream ${stream}, revision ${revision}): ${reason}`;
