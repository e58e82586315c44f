import { expectedAfter, timeAfter } from '../../shared/event-store/codec.ts';
import { type ControlReads, readControl } from '../../shared/event-store/control-stream.ts';
import { RevisionConflict } from '../../shared/event-store/errors.ts';
import type { EventStore, Expected, RecordedEvent } from '../../shared/event-store/port.ts';
import { isSealEvent } from '../../shared/payment/events.ts';
import { SEALS_STREAM, type SealEvent } from '../../shared/payment/seal-events.ts';
import { newEventId } from '../../shared/runtime/ids.ts';
import { keysOf, type SealedHead } from './seals.ts';

export type RecordedSeal = RecordedEvent<SealEvent>;

export const sealsOf = async (store: ControlReads): Promise<RecordedSeal[]> =>
  (await readControl(store, SEALS_STREAM)).events.filter((one): one is RecordedSeal =>
    isSealEvent(one.event),
  );

export const lastKeyOf = (seals: readonly RecordedSeal[]): string | undefined => {
  const last = seals.at(-1);
  return last === undefined ? undefined : keysOf(last.event).after;
};

export const appendSeal = async (
  store: ControlReads & Pick<EventStore, 'append'>,
  last: RecordedSeal | undefined,
  event: SealEvent,
  actor: string,
): Promise<RecordedSeal> => {
  const id = newEventId();
  const context = { actor, requestId: id, correlationId: id, causationId: id };
  const next = { id, time: timeAfter(last), event, context };
  const appendAt = (expected: Expected) => store.append(SEALS_STREAM, expected, [next]);
  const [stored] = await appendAt(expectedAfter(last)).catch(async (error: unknown) => {
    if (!(error instanceof RevisionConflict)) throw error;
    const { events, end } = await readControl(store, SEALS_STREAM);
    // Another seal, and not an event of others.
    if (events.at(-1)?.hash !== last?.hash) throw error;
    return appendAt(end);
  });
  return stored as RecordedSeal;
};

/** Undefined where the log is empty. Throws StoreUnavailable. */
export const headToSeal = async (store: Pick<EventStore, 'end' | 'hashAt'>, log: string) => {
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
