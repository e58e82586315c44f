/** Where the head of the log comes from that is sealed, and how much of the log no seal covers. */
import type { EventStore } from '../../shared/event-store/port.ts';
import type { SealedHead } from '../../shared/event-store/seals.ts';
import { headToSeal, type RecordedSeal } from './append.ts';

/** Each function that gives a promise throws StoreUnavailable. */
export type SealSource = {
  /** The last seal of the log, or change of the key, that is known here. */
  last(): RecordedSeal | undefined;
  /** How many events no seal covers; 0 while nothing can be sealed from here. */
  unsealed(): Promise<number>;
  /** The head to be signed, and how many events of `unsealed` it covers; undefined while there is none. */
  head(): Promise<{ head: SealedHead; unsealed: number } | undefined>;
  /** A seal was stored that covers so many events more. */
  sealed(seal: RecordedSeal, unsealed: number): void;
};

/** The source where the store keeps the chain over the log. `last` is its last seal. */
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
