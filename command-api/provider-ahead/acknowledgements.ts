/**
 * What operators have acknowledged of a provider that was ahead of the log (gaps §17): one stream of
 * the audit family, which every command process reads.
 */
import { expectedAfter, timeAfter } from '../../shared/event-store/append-after.ts';
import type { EventContext, EventStore, RecordedEvent } from '../../shared/event-store/port.ts';
import { auditStreamOf } from '../../shared/payment/audit-events.ts';
import { isOtherProvider } from '../../shared/payment/payment-state.ts';
import { newEventId } from '../../shared/runtime/ids.ts';

const STREAM = auditStreamOf('provider-ahead');

/** The stream as it was read. */
export type Acknowledgements = {
  /** Up to here everything in this provider's ledger is acknowledged; null for nothing. */
  cursor: string | null;
  last: RecordedEvent | undefined;
};

/**
 * What was acknowledged of the provider of these names: in the ledger of another one its cursor is a place
 * beyond the end, or none at all. Throws what the event store throws.
 */
export const readAcknowledgements = async (
  store: Pick<EventStore, 'readStream'>,
  providers: readonly string[],
): Promise<Acknowledgements> => {
  const events = await store.readStream(STREAM);
  const cursors = events.flatMap(({ event }) =>
    event.type === 'ProviderAheadAcknowledged' && !isOtherProvider(event.data.provider, providers)
      ? [event.data.cursor]
      : [],
  );
  return { cursor: cursors.at(-1) ?? null, last: events.at(-1) };
};

/**
 * Records that an operator has acknowledged the ledger up to `cursor`. Throws RevisionConflict
 * where somebody was faster, and what else the event store throws.
 */
export const recordAcknowledgement = async (
  store: Pick<EventStore, 'append'>,
  { last }: Acknowledgements,
  data: { cursor: string; operations: number; provider?: string },
  context: EventContext,
): Promise<void> => {
  const event = { type: 'ProviderAheadAcknowledged', data } as const;
  const next = { id: newEventId(), time: timeAfter(last), event, context };
  await store.append(STREAM, expectedAfter(last), [next]);
};
