/** From a stored form with its hashes to an event. */
import { decode, isReadable, unreadableAt } from './codec.ts';
import type { RecordedEvent, StoredForm, UnreadableEvent } from './port.ts';
import { hashReason, linkReason } from './verify-chain.ts';

/** The form as an event. Never throws: one that cannot be read becomes an UnreadableEvent. */
export function decodeForm(form: StoredForm): RecordedEvent | UnreadableEvent {
  const event = decode(form);
  if (!isReadable(event)) return event;
  // A text that was changed can read well: another amount, another card.
  const reason = hashReason(form) ?? linkReason(form);
  return reason === undefined ? event : unreadableAt(form, reason);
}
