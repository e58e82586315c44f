/** An acknowledged break of the log is listed, and does not make the log broken. */

import type { LogBreak } from '../../shared/event-store/breaks.ts';
import { timeAfter } from '../../shared/event-store/codec.ts';
import { AppendOutcomeUnknown } from '../../shared/event-store/errors.ts';
import type { EventContext, EventStore, RecordedEvent } from '../../shared/event-store/port.ts';
import { acknowledgementStreamOf } from '../../shared/payment/audit-events.ts';
import { newEventId, newUlid } from '../../shared/runtime/ids.ts';

export type Acknowledged = Omit<LogBreak, 'position'> & { note: string };

/** In a stream of its own, so that no foreign event is in its way. Throws what the event store throws. */
export const acknowledgeBreak = async (
  store: Pick<EventStore, 'append'>,
  { stream, revision, reason, digest, note }: Acknowledged,
  context: EventContext,
): Promise<RecordedEvent> => {
  const data = { stream, revision, reason, ...(digest !== undefined && { digest }), note };
  const event = { type: 'LogBreakAcknowledged', data } as const;
  const one = { id: newEventId(), time: timeAfter(undefined), event, context };
  const own = acknowledgementStreamOf(newUlid());
  const append = () => store.append(own, 'none', [one]);
  const [stored] = await append().catch((error: unknown) => {
    // The very same append again stores nothing twice.
    if (error instanceof AppendOutcomeUnknown) return append();
    throw error;
  });
  return stored as RecordedEvent;
};
