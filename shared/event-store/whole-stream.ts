/** A stream that was read whole: its events follow one another by revision and hash, or it is rejected. */
import { allReadable, isReadable, unreadableAt } from './codec.ts';
import { StreamNotWhole } from './errors.ts';
import type { RecordedEvent, UnreadableEvent } from './port.ts';
import { previousReason, revisionReason } from './verify-chain.ts';

/**
 * The events of a stream from revision 0. Throws StreamNotWhole where its first event has another
 * revision, and UnreadableStream at the first event that cannot be read or does not follow the one before
 * it: commands and reads never work on a stream that was changed. The driver checks that each event has
 * its own hash.
 */
export const wholeStream = (
  events: readonly (RecordedEvent | UnreadableEvent)[],
): RecordedEvent[] => {
  const [first] = events;
  if (first !== undefined && first.revision > 0)
    throw new StreamNotWhole(`${first.stream}: begins at revision ${first.revision}`);
  let end: RecordedEvent | undefined;
  const followed = events.map((event) => {
    if (!isReadable(event)) return event;
    const { revision, previousHash } = event;
    const reason = revisionReason(revision, end) ?? previousReason(previousHash, end?.hash);
    end = event;
    return reason === undefined ? event : unreadableAt(event, reason);
  });
  return allReadable(followed);
};
