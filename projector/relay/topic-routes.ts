/** The topics over HTTP: the bytes that a broker has, one message on each line. For all merchants. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { reject } from '../../shared/http/errors.ts';
import { NoParameters } from '../../shared/http/fields.ts';
import { type RoutesOf, routeWith, sendJson } from '../../shared/http/route.ts';
import { NDJSON } from '../../shared/http/server/streams.ts';
import {
  type FeedMessage,
  PARTITIONS_DEFAULT,
  type Partitions,
  SEALS_KEY,
  TOPICS,
  type Topic,
  topicName,
} from '../event-feed/port.ts';
import type { Relay } from './relay.ts';
import {
  openTopicReader,
  type TopicPage,
  type TopicReader,
  type TopicReaderOptions,
} from './topic-reader.ts';

export type TopicOptions = {
  store: TopicReaderOptions['store'];
  relay: Pick<Relay, 'status' | 'partitions' | 'lag'>;
  topicPrefix: string;
};

const LIMIT_MAX = 1_000;
const CLEANUP: Record<Topic, string> = { events: 'delete', state: 'compact', seals: 'delete' };
const KEYS: Record<Topic, string> = { events: 'paymentId', state: 'paymentId', seals: SEALS_KEY };

const isTopic = (text: string): text is Topic => (TOPICS as readonly string[]).includes(text);

const parseLimit = (text: string | undefined): number | undefined => {
  if (text === undefined) return LIMIT_MAX;
  const limit = /^[1-9][0-9]{0,3}$/.test(text) ? Number(text) : 0;
  return limit >= 1 && limit <= LIMIT_MAX ? limit : undefined;
};

export type TopicDeps = Pick<TopicOptions, 'relay' | 'topicPrefix'> & {
  topics: TopicReader;
  partitions(): Partitions;
};

export const openTopics = ({ store, relay, topicPrefix }: TopicOptions): TopicDeps => {
  const partitions = (): Partitions => relay.partitions() ?? PARTITIONS_DEFAULT;
  return { relay, topicPrefix, partitions, topics: openTopicReader({ store, partitions }) };
};

type Query = { from?: string | string[]; limit?: string | string[]; keys?: string | string[] };

/** Also takes a position padded with zeros, as pages show it. */
const pageAfter = async (
  topics: TopicReader,
  topic: Topic,
  from: string,
  limit: number,
): Promise<TopicPage | undefined> => {
  if (from === 'start') return topics.page(topic, null, limit);
  if (from === 'latest') return topics.page(topic, await topics.latest(), limit);
  const page = await topics.page(topic, from, limit);
  const plain = from.replace(/^0+(?=[0-9]+$)/, '');
  return page === undefined && plain !== from ? topics.page(topic, plain, limit) : page;
};

const lineOf = ({ partition, key, value }: FeedMessage, withKeys: boolean): string =>
  withKeys
    ? `{"partition":${partition},"key":${JSON.stringify(key)},"value":${value}}\n`
    : `${value}\n`;

const sendMessages = async (
  { topics }: TopicDeps,
  topic: Topic,
  { from = 'start', limit, keys }: Query,
  reply: FastifyReply,
): Promise<FastifyReply> => {
  const events = Array.isArray(limit) ? undefined : parseLimit(limit);
  if (events === undefined) {
    return reject(reply, 'INVALID_REQUEST', [`limit must be a number from 1 to ${LIMIT_MAX}`]);
  }
  const page = Array.isArray(from) ? undefined : await pageAfter(topics, topic, from, events);
  if (page === undefined) {
    const details = ['from must be start, latest or the position of an event'];
    return reject(reply, 'INVALID_REQUEST', details);
  }
  return reply
    .type(NDJSON)
    .header('next-position', page.next ?? 'start')
    .send(page.messages.map((message) => lineOf(message, keys === 'true')).join(''));
};

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
    request: { allMerchants: true },
    responses: {},
    handle: (deps, _input, reply) => {
      const { params, query } = reply.request as FastifyRequest<{ Params: { topic: string } }>;
      if (!isTopic(params.topic)) return reject(reply, 'NOT_FOUND');
      return sendMessages(deps, params.topic, query as Query, reply);
    },
  }),
} satisfies Partial<RoutesOf<'projector', TopicDeps>>;
