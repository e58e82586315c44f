/**
 * The topics computed from the log: the very messages that the relay sends, also where there is no
 * broker. The numbers of a partition count from the start of the log, so a page that does not
 * follow one read before is found by walking there once.
 */
import { StoreUnavailable } from '../../shared/event-store/errors.ts';
import type {
  EventStore,
  Position,
  RecordedEvent,
  UnreadableEvent,
} from '../../shared/event-store/port.ts';
import { paymentOf } from '../../shared/payment/payment-events.ts';
import { createBoundedMap } from '../../shared/runtime/bounded-map.ts';
import type { FeedMessage, Partitions, Topic } from '../event-feed/port.ts';
import { count, messagesOf } from './batch.ts';
import { followPaymentStates } from './payment-states.ts';

export type TopicPage = {
  messages: FeedMessage[];
  /** Where the next page begins; the page's own beginning when the log has no more. */
  next: Position | null;
};

export type TopicReader = {
  /**
   * The messages of up to `limit` events after a position (null: from the start). Undefined when
   * no event has that position. Throws StoreUnavailable.
   */
  page(topic: Topic, after: Position | null, limit: number): Promise<TopicPage | undefined>;
};

export type TopicReaderOptions = {
  store: Pick<EventStore, 'readAll' | 'readStream'>;
  /** As the topics have them, or would. */
  partitions(): Partitions;
};

/** What the walk has come to: each partition's next number, and the payments that are left out. */
type Walk = { counters: number[]; parked: Set<string> };

const PLACES_MAX = 1_000;
const STEP_EVENTS = 1_000;

const copyOf = ({ counters, parked }: Walk): Walk => ({
  counters: [...counters],
  parked: new Set(parked),
});

/** A reader; it remembers where its last pages ended. */
export const openTopicReader = ({ store, partitions }: TopicReaderOptions): TopicReader => {
  const places = createBoundedMap<Walk>(PLACES_MAX);

  const placeName = (position: Position | null): string => JSON.stringify([partitions(), position]);
  const remember = (position: Position | null, walk: Walk): void => {
    places.set(placeName(position), copyOf(walk));
  };

  /** The messages of one event, or none where the relay would park it. */
  const walkOver = async (
    walk: Walk,
    readModels: ReturnType<typeof followPaymentStates>,
    event: RecordedEvent | UnreadableEvent,
  ): Promise<Record<Topic, FeedMessage> | undefined> => {
    const paymentId = paymentOf(event.stream);
    if (paymentId === undefined || walk.parked.has(paymentId)) return undefined;
    try {
      if ('unreadable' in event) throw new Error(event.unreadable);
      const messages = await messagesOf(event, readModels, { ...walk, partitions: partitions() });
      count(walk.counters, messages.events);
      return messages;
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      walk.parked.add(paymentId);
      return undefined;
    }
  };

  /** Walks from the start of the log to a position; undefined when it is not there. */
  const walkTo = async (position: Position | null): Promise<Walk | undefined> => {
    const known = places.get(placeName(position));
    if (known !== undefined) return copyOf(known);
    const walk: Walk = { counters: [], parked: new Set() };
    if (position === null) return walk;
    const readModels = followPaymentStates(store);
    let at: Position | null = null;
    for (;;) {
      const events: (RecordedEvent | UnreadableEvent)[] = await store.readAll(at, STEP_EVENTS);
      for (const event of events) {
        await walkOver(walk, readModels, event);
        if (event.position === position) return walk;
      }
      at = events.at(-1)?.position ?? at;
      if (events.length < STEP_EVENTS) return undefined;
    }
  };

  return {
    page: async (topic, after, limit) => {
      const walk = await walkTo(after);
      if (walk === undefined) return undefined;
      const readModels = followPaymentStates(store);
      const messages: FeedMessage[] = [];
      let next = after;
      for (const event of await store.readAll(after, limit)) {
        const made = await walkOver(walk, readModels, event);
        if (made !== undefined) messages.push(made[topic]);
        next = event.position;
      }
      remember(next, walk);
      return { messages, next };
    },
  };
};
