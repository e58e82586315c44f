/** A stream as a whole: readable from its first event to its last, or not at all. */
import { isReadable } from './codec.ts';
import { UnreadableStream } from './errors.ts';
import type { RecordedEvent, UnreadableEvent } from './port.ts';

/** The events themselves. Throws UnreadableStream, with those before the first that is none. */
export function allReadable(events: (RecordedEvent | UnreadableEvent)[]): RecordedEvent[] {
  return events.map((event, at) => {
    if (isReadable(event)) return event;
    const { stream, revision, unreadable } = event;
    const before = events.slice(0, at).filter(isReadable);
    throw new UnreadableStream(`${stream}, revision ${revision}: ${unreadable}`, before);
  });
}
