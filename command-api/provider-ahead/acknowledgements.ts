/**
 * What operators have acknowledged of a provider that was ahead of the log (gaps §17): one stream of
 * the audit family, which every command process reads.
 */
import { expectedAfter, timeAfter } from '../../shared/event-store/append-after.ts';
import type { EventContext, EventStore, RecordedEvent } from '../../shared/event-store/port.ts';
import { auditStreamOf } from '../../shared/payment/audit-events.ts';
import { newEventId } from '../../shared/runtime/ids.ts';

const STREAM = auditStreamOf('provider-ahead');

/** The stream as it was read. */
export type Acknowledgements = {
  /** Up to here everything in the ledger is acknowledged; null for nothing. */
  cursor: string | null;
  last: RecordedEvent | undefined;
};

/** Throws what the event store throws. */
export const readAcknowledgements = async (
  store: Pick<EventStore, 'readStream'>,
): Promise<Acknowledgements> => {
  const events = await store.readStream(STREAM);
  const last = events.at(-1);
  const { event } = last ?? {};
  return { cursor: event?.type === 'ProviderAheadAcknowledged' ? event.data.cursor : null, last };
};

/**
 * Records that an operator has acknowledged the ledger up to `cursor`. Throws RevisionConflict
 * where somebody was faster, and what else the event store throws.
 */
export const recordAcknowledgement = async (
  store: Pick<EventStore, 'append'>,
  { last }: Acknowledgements,
  data: { cursor: string; operations: number },
  context: EventContext,
): Promise<void> => {
  const event = { type: 'ProviderAheadAcknowledged', data } as const;
  const next = { id: newEventId(), time: timeAfter(last), event, context };
  await store.append(STREAM, expectedAfter(last), [next]);
};
