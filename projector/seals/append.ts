/** Appends to the stream of seals. */
import { expectedAfter, timeAfter } from '../../shared/event-store/append-after.ts';
import type { EventStore, RecordedEvent } from '../../shared/event-store/port.ts';
import type { SealedHead } from '../../shared/event-store/seals.ts';
import type { SealEvent } from '../../shared/payment/seal-events.ts';
import { SEALS_STREAM } from '../../shared/payment/seals-stream.ts';
import { newEventId } from '../../shared/runtime/ids.ts';

/** A stored seal, or a stored change of the key. */
export type RecordedSeal = RecordedEvent<SealEvent>;

/** The head of a log to be signed; undefined where the log is empty. Throws StoreUnavailable. */
export const headToSeal = async (
  store: Pick<EventStore, 'end' | 'hashAt'>,
  log: string,
): Promise<SealedHead | undefined> => {
  const position = await store.end();
  const logHash = position === null ? undefined : (await store.hashAt(position))?.logHash;
  return position === null || logHash === undefined ? undefined : { log, position, logHash };
};

/** Stores one after the last one. Throws what `append` throws. */
export const appendSeal = async (
  store: Pick<EventStore, 'append'>,
  last: RecordedSeal | undefined,
  event: SealEvent,
  actor: string,
): Promise<RecordedSeal> => {
  const id = newEventId();
  const context = { actor, requestId: id, correlationId: id, causationId: id };
  const next = { id, time: timeAfter(last), event, context };
  const [stored] = await store.append(SEALS_STREAM, expectedAfter(last), [next]);
  return stored as RecordedSeal;
};
