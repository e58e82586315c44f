import { allReadable, decode, isReadable, unreadableAt } from './codec.ts';
import { StreamNotWhole } from './errors.ts';
import type { RecordedEvent, StoredForm, UnreadableEvent } from './port.ts';
import { formReason, previousReason, revisionReason } from './verify-chain.ts';

/** Never throws. */
export function decodeForm(form: StoredForm): RecordedEvent | UnreadableEvent {
  const event = decode(form);
  if (!isReadable(event)) return event;
  // A changed text can read well: another amount, another card.
  const reason = formReason(form);
  return reason === undefined ? event : unreadableAt(form, reason);
}

/**
 * Throws StreamNotWhole where the first event has another revision, and UnreadableStream at the
 * first that cannot be read or does not follow: no command works on a changed stream.
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
