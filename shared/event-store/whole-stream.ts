/** From stored forms to events: each by its own hash, and a whole stream by its links. */
import { allReadable, decode, isReadable, unreadableAt } from './codec.ts';
import { StreamNotWhole } from './errors.ts';
import type { RecordedEvent, StoredForm, UnreadableEvent } from './port.ts';
import { formReason, previousReason, revisionReason } from './verify-chain.ts';

/** The form as an event. Never throws: one that cannot be read becomes an UnreadableEvent. */
export function decodeForm(form: StoredForm): RecordedEvent | UnreadableEvent {
  const event = decode(form);
  if (!isReadable(event)) return event;
  // A text that was changed can read well: another amount, another card.
  const reason = formReason(form);
  return reason === undefined ? event : unreadableAt(form, reason);
}

/**
 * The events of a stream from revision 0, each checked by its own hash before. Throws StreamNotWhole where its
 * first event has another revision, and UnreadableStream at the first event that cannot be read or does not
 * follow the one before it: commands and reads never work on a stream that was changed.
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
