/**
 * The topics computed from the log: the same messages that the relay sends. The numbers of a partition
 * count from the start of the log, so a page that does not follow an earlier page costs a walk through the
 * log before it.
 */
import {
  followPaymentStates,
  type PaymentStates,
} from '../../shared/event-store/payment-states.ts';
import type { EventStore, LogEvent, Position } from '../../shared/event-store/port.ts';
import { SEALS_STREAM } from '../../shared/payment/seal-events.ts';
import { createBoundedMap } from '../../shared/runtime/bounded-map.ts';
import type { FeedMessage, Partitions, Topic } from '../event-feed/port.ts';
import { messagesOf } from './batch.ts';

export type TopicReaderOptions = {
  store: Pick<EventStore, 'readAll' | 'readStream' | 'end'>;
  partitions(): Partitions;
};

type Walk = { counters: number[]; parked: Set<string> };

const WALKS_MAX = 1_000;
const WALKS_BYTES_MAX = 16 * 1024 * 1024;
const STEP_EVENTS = 1_000;

const copyOf = (walk: Walk): Walk => structuredClone(walk);

const noWalk = (error: unknown): undefined => {
  if (!(error instanceof RangeError)) throw error;
};

export const openTopicReader = ({ store, partitions }: TopicReaderOptions) => {
  const walks = createBoundedMap<Walk>(WALKS_MAX, {
    bytesMax: WALKS_BYTES_MAX,
    bytesOf: ({ parked }) => 500 + 100 * parked.size,
  });

  const keyOf = (position: Position | null): string => JSON.stringify([partitions(), position]);
  const remember = (position: Position | null, walk: Walk): void => {
    walks.set(keyOf(position), copyOf(walk));
  };

  /** None where the relay would park the event, or leave it out. */
  const walkOver = async (walk: Walk, states: PaymentStates, event: LogEvent) => {
    if (walk.parked.has(event.stream)) return {};
    const { counters } = walk;
    const made = await messagesOf(event, states, { counters, partitions: partitions() });
    if (typeof made !== 'string') return made;
    // An event that cannot be read holds back its own payment, and no later seal.
    if (event.stream !== SEALS_STREAM) walk.parked.add(event.stream);
    return {};
  };

  const walkTo = async (position: Position | null): Promise<Walk | undefined> => {
    const known = walks.get(keyOf(position));
    if (known !== undefined) return copyOf(known);
    const walk: Walk = { counters: [], parked: new Set() };
    if (position === null) return walk;
    const states = followPaymentStates(store);
    let at: Position | null = null;
    for (;;) {
      const events: LogEvent[] = await store.readAll(at, STEP_EVENTS, position);
      for (const event of events) await walkOver(walk, states, event);
      at = events.at(-1)?.position ?? null;
      if (at === position) return walk;
      if (at === null) return undefined;
    }
  };

  return {
    latest: () => store.end(),
    /** Of up to `limit` events. Undefined where no event is at `after`. Throws StoreUnavailable. */
    page: async (topic: Topic, after: Position | null, limit: number) => {
      const walk = await walkTo(after).catch(noWalk);
      if (walk === undefined) return undefined;
      const states = followPaymentStates(store);
      const messages: FeedMessage[] = [];
      let next = after;
      for (const event of await store.readAll(after, limit)) {
        const { [topic]: own } = await walkOver(walk, states, event);
        if (own !== undefined) messages.push(own);
        next = event.position;
      }
      remember(next, walk);
      return { messages, next };
    },
  };
};
export type TopicReader = ReturnType<typeof openTopicReader>;
