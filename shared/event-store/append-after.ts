import type { Expected, RecordedEvent } from './port.ts';

export const expectedAfter = (
  last: Pick<RecordedEvent, 'revision' | 'hash'> | undefined,
): Expected => (last === undefined ? 'none' : { revision: last.revision, hash: last.hash });

/** RFC 3339 with milliseconds: the wall clock, but never before the last event. */
export const timeAfter = (
  last: Pick<RecordedEvent, 'time'> | undefined,
  nowMs = Date.now(),
): string => {
  const before = last?.time ?? '';
  const now = new Date(nowMs).toISOString();
  return now < before ? before : now;
};
