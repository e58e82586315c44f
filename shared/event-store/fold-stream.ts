/** Folding a stream that may be damaged: its events can read well and yet not follow one another. */
import { UnreadableStream } from './errors.ts';
import type { RecordedEvent } from './port.ts';

/** What `fold` makes of a stream's events. Throws UnreadableStream where `fold` throws. */
export const foldStream = <T>(
  events: readonly RecordedEvent[],
  fold: (events: readonly RecordedEvent[]) => T,
): T => {
  try {
    return fold(events);
  } catch (error) {
    throw new UnreadableStream(`${events[0]?.stream}: ${(error as Error).message}`);
  }
};
