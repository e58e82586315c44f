/** How the cases of the event-store port open a store, and the events that they append. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect } from '@jest/globals';
import { isReadable } from '../../shared/event-store/codec.ts';
import { AppendOutcomeUnknown, RevisionConflict } from '../../shared/event-store/errors.ts';
import type {
  EventStore,
  Expected,
  NewEvent,
  Position,
  RecordedEvent,
  SubscriptionItem,
  UnreadableEvent,
} from '../../shared/event-store/port.ts';
import type { EventType } from '../../shared/payment/events.ts';
import type { Driver } from '../support/describe-driver.ts';
import type { Administrator } from '../support/eventstoredb-administrator.ts';
import { authorized, created, newEvent, timeOf } from '../support/payment-events.ts';

type EventStoreUnderTest = {
  /** Opens the same store, as the next start of the service would. */
  open(): Promise<EventStore>;
  /** Removes the store for good. */
  remove(): Promise<void>;
  /** Breaks the connections of the running subscriptions, which the driver has to make anew. */
  dropConnections?(): Promise<void>;
};

export type EventStoreDriver = Driver & {
  /** Up to how many events `head` counts, where there is a bound. */
  countedEventsMax?: number;
  /** Why no connection of the driver can be dropped; printed in place of that test. */
  connectionless?: string;
  /** An administrator, who may delete and cut streams of the store, past the service. */
  administrator?(): Promise<Administrator>;
  /** Why there is no administrator; printed in place of those tests. */
  undeletable?: string;
  /** A store to open; whether others have written to it does not matter. */
  make(): Promise<EventStoreUnderTest>;
  /** Called once after the last test. */
  end?(): Promise<void>;
};

/** `start` is the end of the log before the test or its group, `run` a name that no other has. */
type OpenedStore = { store: EventStore; start: Position | null; run: string };

/**
 * Opens one store for the tests of the group, empty where the driver can make such a one, and hands it
 * to `use` before each of them, or before all. A log that others have written to is as good as an empty
 * one: each test, or the group, has its own streams (`named`), and looks at what comes after `start`.
 */
export const openForGroup = (
  driver: EventStoreDriver,
  use: (opened: OpenedStore) => void,
  before: typeof beforeEach = beforeEach,
) => {
  let place: EventStoreUnderTest;
  let store: EventStore;
  let run: string;
  beforeAll(async () => {
    place = await driver.make();
    store = await place.open();
  });
  before(async () => {
    run = randomUUID();
    use({ store, start: await store.end(), run });
  });
  afterAll(async () => {
    await store.close();
    await place.remove();
  });
  return {
    named: (name: number | string): string => `payment-${run}-${name}`,
    /** Closes the store and opens it again. */
    reopen: async (): Promise<EventStore> => {
      await store.close();
      store = await place.open();
      return store;
    },
    dropConnections: async () => place.dropConnections?.(),
  };
};

/** Where an append after this event is expected to begin. */
export const at = (event: RecordedEvent | undefined): Expected => {
  if (event === undefined) throw new Error('no event to append after');
  return { revision: event.revision, hash: event.hash };
};

/** All of an event that answers are made from. */
export const bytes = (events: (RecordedEvent | UnreadableEvent)[]): string =>
  JSON.stringify(events.map((event) => isReadable(event) && [event.event, event.context]));
export const batchOf = (count: number): NewEvent[] =>
  Array.from({ length: count }, (_, n) => newEvent(n === 0 ? created() : authorized(), timeOf(n)));

/** An append of which the store did not say what came of it, as a busy one may not, is sent again. */
const appendSurely = async (
  store: EventStore,
  ...append: Parameters<EventStore['append']>
): Promise<void> => {
  for (let attempt = 1; attempt <= 5; attempt++) {
    try {
      return void (await store.append(...append));
    } catch (error) {
      if (!(error instanceof AppendOutcomeUnknown)) throw error;
    }
  }
  throw new Error('five times of unknown outcome');
};

/** Appends one event at the end of a stream, again after each lost race. */
export async function appendWithRetry(store: EventStore, stream: string): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const last = (await store.readStream(stream)).at(-1);
    const expected = last === undefined ? 'none' : at(last);
    try {
      return await appendSurely(store, stream, expected, [newEvent(created())]);
    } catch (error) {
      if (!(error instanceof RevisionConflict)) throw error;
    }
  }
  throw new Error('lost a hundred races');
}

/** What a subscription delivers until `enough` of it has come. */
export async function collect(
  store: EventStore,
  after: string | null,
  enough: (items: SubscriptionItem[]) => boolean,
  types?: readonly EventType[],
): Promise<SubscriptionItem[]> {
  const stop = new AbortController();
  const items: SubscriptionItem[] = [];
  for await (const item of store.subscribe(after, stop.signal, types)) {
    items.push(item);
    if (enough(items)) stop.abort();
  }
  return items;
}
export const eventsOf = (items: SubscriptionItem[]) =>
  items.flatMap((item) => (item.kind === 'events' ? item.events : []));
export const caughtUp = (items: SubscriptionItem[]): boolean => items.at(-1)?.kind === 'caught-up';

const placeless = (events: RecordedEvent[]) => events.map(({ position: _, ...rest }) => rest);

/** The events of an append with their places: the append itself names that of the last one alone. */
export const placed = async (
  store: EventStore,
  append: Promise<RecordedEvent[]>,
): Promise<RecordedEvent[]> => {
  const events = await append;
  const [first] = events;
  const stream = await store.readStream(first?.stream ?? '');
  const stored = stream.slice(first?.revision, (first?.revision ?? 0) + events.length);
  expect(placeless(events)).toEqual(placeless(stored));
  expect(events.at(-1)).toEqual(stored.at(-1));
  return stored;
};
