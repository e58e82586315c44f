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
  const now = new Date().toISOString();
  const time = last !== undefined && now < last.time ? last.time : now;
  const expected = last === undefined ? 'none' : { revision: last.revision, hash: last.hash };
  const event = { type: 'ProviderAheadAcknowledged', data } as const;
  await store.append(STREAM, expected, [{ id: newEventId(), time, event, context }]);
};
