/**
 * What operators have acknowledged of a provider that was ahead of the log (gaps §17): one stream of
 * the audit family, which every command process reads.
 */
import type { EventContext, EventStore, RecordedEvent } from '../../shared/event-store/port.ts';
import { auditStreamOf } from '../../shared/payment/audit-events.ts';
import { newEventId } from '../../shared/runtime/ids.ts';

const STREAM = auditStreamOf('provider-ahead');

/** The stream as it was read. */
export type Acknowledgements = {
  /** Up to this entry of the ledger everything is acknowledged; 0 for nothing. */
  sequence: number;
  last: RecordedEvent | undefined;
};

/** Throws what the event store throws. */
export const readAcknowledgements = async (
  store: Pick<EventStore, 'readStream'>,
): Promise<Acknowledgements> => {
  const events = await store.readStream(STREAM);
  const sequences = events.map(({ event }) =>
    event.type === 'ProviderAheadAcknowledged' ? event.data.sequence : 0,
  );
  return { sequence: Math.max(0, ...sequences), last: events.at(-1) };
};

/**
 * Records that an operator has acknowledged the ledger up to `sequence`. Throws RevisionConflict
 * where somebody was faster, and what else the event store throws.
 */
export const recordAcknowledgement = async (
  store: Pick<EventStore, 'append'>,
  { last }: Acknowledgements,
  data: { sequence: number; operations: number },
  context: EventContext,
): Promise<void> => {
  const now = new Date().toISOString();
  const time = last !== undefined && now < last.time ? last.time : now;
  const expected = last === undefined ? 'none' : { revision: last.revision, hash: last.hash };
  const event = { type: 'ProviderAheadAcknowledged', data } as const;
  await store.append(STREAM, expected, [{ id: newEventId(), time, event, context }]);
};
