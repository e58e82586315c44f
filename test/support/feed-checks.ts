/** What any reader of the topics may rely on, asked of messages as they came. */
import { expect } from '@jest/globals';
import type { RecordedEvent } from '../../shared/event-store/port.ts';

export type Received = { partition: number; value: string };
type Parsed = {
  id: string;
  subject: string;
  sequence: string;
  partitionsequence: string;
  type: string;
  partition: number;
  value: string;
};

export const parsed = (messages: readonly Received[]): Parsed[] =>
  messages.map(({ partition, value }) => ({ ...JSON.parse(value), partition, value }));

/** The messages without those that came again; a repeat has to be the same to the byte. */
export const withoutRepeats = (messages: readonly Received[]): Parsed[] => {
  const seen = new Map<string, Parsed>();
  for (const message of parsed(messages)) {
    const first = seen.get(message.id);
    if (first === undefined) seen.set(message.id, message);
    else {
      expect(message.value).toBe(first.value);
      expect(message.partition).toBe(first.partition);
    }
  }
  return [...seen.values()];
};

/**
 * P3: no event is missing, each payment's are in order in one partition, and each partition's
 * numbers run from 0 without a gap.
 */
export const expectWhole = (
  messages: readonly Received[],
  events: readonly Pick<RecordedEvent, 'id' | 'revision'>[],
): void => {
  const unique = withoutRepeats(messages);
  expect(unique.map(({ id }) => id).sort()).toEqual(events.map(({ id }) => id).sort());
  const next = new Map<string, number>();
  for (const { subject, sequence, partition, partitionsequence } of unique) {
    for (const [key, number] of [
      [subject, sequence],
      [`#${partition}`, partitionsequence],
    ] as const) {
      expect([key, Number(number)]).toEqual([key, next.get(key) ?? 0]);
      next.set(key, (next.get(key) ?? 0) + 1);
    }
    expect(next.get(`@${subject}`) ?? partition).toBe(partition);
    next.set(`@${subject}`, partition);
  }
};
