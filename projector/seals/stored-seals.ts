import { expectedAfter, timeAfter } from '../../shared/event-store/codec.ts';
import type { EventStore, RecordedEvent } from '../../shared/event-store/port.ts';
import { keysOf, type SealedHead } from '../../shared/event-store/seals.ts';
import { isSealEvent } from '../../shared/payment/events.ts';
import { SEALS_STREAM, type SealEvent } from '../../shared/payment/seal-events.ts';
import { newEventId } from '../../shared/runtime/ids.ts';

export type RecordedSeal = RecordedEvent<SealEvent>;

/** Throws StoreUnavailable and UnreadableStream. */
export const sealsOf = async (store: Pick<EventStore, 'readStream'>): Promise<RecordedSeal[]> =>
  (await store.readStream(SEALS_STREAM)).filter((one): one is RecordedSeal =>
    isSealEvent(one.event),
  );

export const lastKeyOf = (seals: readonly RecordedSeal[]): string | undefined => {
  const last = seals.at(-1);
  return last === undefined ? undefined : keysOf(last.event).after;
};

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

/** Undefined where the log is empty. Throws StoreUnavailable. */
export const headToSeal = async (
  store: Pick<EventStore, 'end' | 'hashAt'>,
  log: string,
): Promise<SealedHead | undefined> => {
  const position = await store.end();
  const logHash = position === null ? undefined : (await store.hashAt(position))?.logHash;
  return position === null || logHash === undefined ? undefined : { log, position, logHash };
};

/** Where the head to be sealed comes from. Each function that gives a promise throws StoreUnavailable. */
export type SealSource = {
  last(): RecordedSeal | undefined;
  unsealed(): Promise<number>;
  head(): Promise<{ head: SealedHead; unsealed: number } | undefined>;
  sealed(seal: RecordedSeal, unsealed: number): void;
};

export const storedHeads = (
  store: Pick<EventStore, 'end' | 'head' | 'hashAt'>,
  log: string,
  last: RecordedSeal | undefined,
): SealSource => {
  let known = last;
  return {
    last: () => known,
    unsealed: async () => {
      const { eventsAfter } = await store.head(known?.event.data.position ?? null);
      // The last seal itself is not one of them.
      return known === undefined ? eventsAfter : eventsAfter - 1;
    },
    head: async () => {
      const head = await headToSeal(store, log);
      return head && { head, unsealed: 0 };
    },
    sealed: (seal) => {
      known = seal;
    },
  };
};
