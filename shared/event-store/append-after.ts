/** What the next append to a stream follows from: the last event of the stream, undefined for none. */
import type { Expected, RecordedEvent } from './port.ts';

export const expectedAfter = (
  last: Pick<RecordedEvent, 'revision' | 'hash'> | undefined,
): Expected => (last === undefined ? 'none' : { revision: last.revision, hash: last.hash });

/** The time of the next event, RFC 3339 with milliseconds: the wall clock, but never before the last event. */
export const timeAfter = (
  last: Pick<RecordedEvent, 'time'> | undefined,
  nowMs = Date.now(),
): string => {
  const before = last?.time ?? '';
  const now = new Date(nowMs).toISOString();
  return now < before ? before : now;
};
