/**
 * Serves the topics (broker's bytes, one message a line) and the relay's parked payments, for all merchants.
 * Partition numbers count from the log's start, so a page that follows no earlier one walks the log first.
 */
import { z } from 'zod';
import { followPaymentStates, type PaymentStates } from '../shared/event-store/payment-states.ts';
import type { EventStore, LogEvent, Position } from '../shared/event-store/port.ts';
import { reject } from '../shared/http/errors.ts';
import { limitParameter, NoParameters, parameterText } from '../shared/http/fields.ts';
import { okJson, type RoutesOf, routeWith, sendJson } from '../shared/http/route.ts';
import type {} from '../shared/http/server/app.ts';
import { NDJSON } from '../shared/http/server/streams.ts';
import { SEALS_STREAM } from '../shared/payment/seal-events.ts';
import { createBoundedMap } from '../shared/runtime/bounded-map.ts';
import { onError } from '../shared/runtime/error-text.ts';
import { messagesOf } from './batch.ts';
import { RelayParkedList, RelayParkedRetries, RelayParkedRetry } from './contract.ts';
import {
  type FeedMessage,
  PARTITIONS_DEFAULT,
  type Partitions,
  SEALS_KEY,
  TOPICS,
  type Topic,
  topicName,
} from './port.ts';
import type { Relay } from './relay.ts';

export type TopicOptions = {
  store: Pick<EventStore, 'readAll' | 'readStream' | 'end'>;
  relay: Pick<Relay, 'status' | 'partitions' | 'lag'>;
  topicPrefix: string;
};

const LIMIT_MAX = 1_000;
const CLEANUP: Record<Topic, string> = { events: 'delete', state: 'compact', seals: 'delete' };
const KEYS: Record<Topic, string> = { events: 'paymentId', state: 'paymentId', seals: SEALS_KEY };

type Walk = { counters: number[]; parked: Set<string> };

const WALKS_MAX = 1_000;
const WALKS_BYTES_MAX = 16 * 1024 * 1024;
const STEP_EVENTS = 1_000;

/** Computed from the log: the same messages that the relay sends. */
export const openTopics = ({ store, relay, topicPrefix }: TopicOptions) => {
  const partitions = (): Partitions => relay.partitions() ?? PARTITIONS_DEFAULT;
  const walks = createBoundedMap<Walk>(WALKS_MAX, {
    bytesMax: WALKS_BYTES_MAX,
    bytesOf: ({ parked }) => 500 + 100 * parked.size,
  });

  const keyOf = (position: Position | null): string => JSON.stringify([partitions(), position]);

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
    if (known !== undefined) return structuredClone(known);
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

  const pageAfter = async (topic: Topic, after: Position | null, limit: number) => {
    const walk = await walkTo(after).catch(onError(RangeError, () => undefined));
    if (walk === undefined) return undefined;
    const states = followPaymentStates(store);
    const messages: FeedMessage[] = [];
    let next = after;
    for (const event of await store.readAll(after, limit)) {
      const { [topic]: own } = await walkOver(walk, states, event);
      if (own !== undefined) messages.push(own);
      next = event.position;
    }
    walks.set(keyOf(next), structuredClone(walk));
    return { messages, next };
  };

  return {
    relay,
    topicPrefix,
    partitions,
    /** Of up to `limit` events. Undefined where no event is at `from`. Throws StoreUnavailable. */
    page: async (topic: Topic, from: string, limit: number) => {
      if (from === 'start') return pageAfter(topic, null, limit);
      if (from === 'latest') return pageAfter(topic, await store.end(), limit);
      // As pages show it, padded with zeros.
      const plain = from.replace(/^0+(?=[0-9]+$)/, '');
      const page = await pageAfter(topic, from, limit);
      return page === undefined && plain !== from ? pageAfter(topic, plain, limit) : page;
    },
  };
};
export type TopicDeps = ReturnType<typeof openTopics>;

const Query = z.object({
  from: parameterText().default('start'),
  limit: limitParameter(LIMIT_MAX, LIMIT_MAX),
  keys: parameterText().optional(),
});

const lineOf = ({ partition, key, value }: FeedMessage, withKeys: boolean): string =>
  withKeys
    ? `{"partition":${partition},"key":${JSON.stringify(key)},"value":${value}}\n`
    : `${value}\n`;

const NO_POSITION = 'from must be start, latest or the position of an event';

const route = routeWith<TopicDeps>();

/** `responses` is empty, so these routes are in no API document. */
export const TOPIC_ROUTES = {
  listTopics: route({
    request: { allMerchants: true, query: NoParameters },
    responses: {},
    handle: async ({ relay, topicPrefix, partitions }, _input, reply) => {
      const topics = TOPICS.map((topic) => ({
        topic,
        name: topicName(topicPrefix, topic),
        key: KEYS[topic],
        cleanup: CLEANUP[topic],
        partitions: partitions()[topic],
      }));
      const lag = await relay.lag();
      return sendJson(reply, { topics, relay: relay.status(), ...(lag && { lag }) });
    },
  }),
  readTopic: route({
    request: { allMerchants: true, query: Query },
    responses: {},
    handle: async ({ page: pageOf }, { query: { from, limit, keys } }, reply) => {
      const { topic: name } = reply.request.params as { topic: string };
      const topic = TOPICS.find((one) => one === name);
      if (topic === undefined) return reject(reply, 'NOT_FOUND');
      const page = await pageOf(topic, from, limit);
      if (page === undefined) return reject(reply, 'INVALID_REQUEST', [NO_POSITION]);
      return reply
        .type(NDJSON)
        .header('next-position', page.next ?? 'start')
        .send(page.messages.map((message) => lineOf(message, keys === 'true')).join(''));
    },
  }),
} satisfies Partial<RoutesOf<'projector', TopicDeps>>;

export type RelayParkedDeps = { relay: Pick<Relay, 'status' | 'parked' | 'retryParked'> };

const LISTED_MAX = 1_000;

const parkedIn = (notes: Awaited<ReturnType<Relay['parked']>>) =>
  Object.entries(notes)
    .map(([paymentId, parking]) => ({ paymentId, ...parking }))
    .sort((one, other) => one.since.localeCompare(other.since))
    .slice(0, LISTED_MAX);

const parkedRoute = routeWith<RelayParkedDeps>();

export const RELAY_PARKED_ROUTES = {
  listRelayParked: parkedRoute({
    request: { allMerchants: true, query: NoParameters },
    responses: okJson(RelayParkedList),
    handle: async ({ relay }, _input, reply) => {
      const notes = await relay.parked();
      const { state, error } = relay.status();
      const count = Object.keys(notes).length;
      return sendJson(reply, { state, error, count, parked: parkedIn(notes) });
    },
  }),
  retryRelayParked: parkedRoute({
    request: { allMerchants: true, paymentId: 'INVALID_PAYMENT_ID' },
    responses: okJson(RelayParkedRetry),
    handle: async ({ relay }, { paymentId }, reply) => {
      reply.request.paymentId = paymentId;
      const [one] = await relay.retryParked(paymentId);
      return one === undefined
        ? reject(reply, 'PAYMENT_NOT_FOUND', ['the relay has not parked a payment with this id'])
        : sendJson(reply, one);
    },
  }),
  retryAllRelayParked: parkedRoute({
    request: { allMerchants: true },
    responses: okJson(RelayParkedRetries),
    handle: async ({ relay }, _input, reply) => {
      const retried = await relay.retryParked();
      const stillParked = retried.filter(({ sent }) => !sent).length;
      const left = Object.keys(await relay.parked()).length - stillParked;
      return sendJson(reply, { retried, left: Math.max(0, left) });
    },
  }),
} satisfies Partial<RoutesOf<'projector', RelayParkedDeps>>;
