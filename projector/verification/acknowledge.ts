/** An acknowledged break of the log is listed, and does not make the log broken. */

import type { LogBreak } from '../../shared/event-store/breaks.ts';
import { isReadable, timeAfter } from '../../shared/event-store/codec.ts';
import { AppendOutcomeUnknown } from '../../shared/event-store/errors.ts';
import type {
  EventContext,
  EventStore,
  LogEvent,
  RecordedEvent,
} from '../../shared/event-store/port.ts';
import { FOREIGN } from '../../shared/event-store/verify-chain.ts';
import { acknowledgementStreamOf } from '../../shared/payment/audit-events.ts';
import { paymentOf } from '../../shared/payment/payment-events.ts';
import type { ReadModelChange } from '../../shared/read-models/port.ts';
import { newEventId, newUlid } from '../../shared/runtime/ids.ts';

const foreignIn = (recorded: LogEvent): string | undefined => {
  if (!isReadable(recorded) || recorded.event.type !== 'LogBreakAcknowledged') return undefined;
  const { stream, revision, reason } = recorded.event.data;
  return revision === 0 && reason === FOREIGN ? paymentOf(stream) : undefined;
};

/** Payments that are acknowledged as foreign from their first event on; one with a document stays. */
export const forgetForeign = async (
  events: readonly LogEvent[],
  lastOf: (paymentId: string) => Promise<number>,
): Promise<Extract<ReadModelChange, { kind: 'repair' }>[]> => {
  const forgotten: Extract<ReadModelChange, { kind: 'repair' }>[] = [];
  for (const paymentId of events.flatMap((event) => foreignIn(event) ?? [])) {
    if ((await lastOf(paymentId)) === -1)
      forgotten.push({ kind: 'repair', paymentId, readModel: undefined });
  }
  return forgotten;
};

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
