/**
 * The topics over HTTP, for `payments topics`: the values of the messages, one a line, to the byte
 * as the broker has them, also where there is no broker. For operators (scope `ops:admin`): the
 * topics hold every merchant's payments.
 */
import type { FastifyInstance, onRequestHookHandler } from 'fastify';
import { speaksForAll } from '../../shared/http/auth/authorize.ts';
import { JSON_TYPE, reject } from '../../shared/http/errors.ts';
import type {} from '../../shared/http/server/app.ts';
import {
  PARTITIONS_DEFAULT,
  type Partitions,
  TOPICS,
  type Topic,
  topicName,
} from '../event-feed/port.ts';
import type { RelayStatus } from './relay.ts';
import { openTopicReader, type TopicReaderOptions } from './topic-reader.ts';

export type TopicRoutes = {
  /** Token, scope `ops:admin` and rate limit (shared/http/auth/authorize.ts). */
  authorize: onRequestHookHandler;
  store: TopicReaderOptions['store'];
  relay: { status(): RelayStatus; partitions(): Partitions | undefined };
  topicPrefix: string;
};

const LIMIT_MAX = 1_000;
const CLEANUP: Record<Topic, string> = { events: 'delete', state: 'compact' };
const PARTITIONS_UNSET: Partitions = { events: PARTITIONS_DEFAULT, state: PARTITIONS_DEFAULT };

const isTopic = (text: string): text is Topic => (TOPICS as readonly string[]).includes(text);

/** The number of events to look at; undefined when it is no such number. */
const parseLimit = (text: string | undefined): number | undefined => {
  if (text === undefined) return LIMIT_MAX;
  const limit = /^[1-9][0-9]{0,3}$/.test(text) ? Number(text) : 0;
  return limit >= 1 && limit <= LIMIT_MAX ? limit : undefined;
};

type Query = { from?: string | string[]; limit?: string | string[] };

/** Registers `GET /ops/v1/topics` and `GET /ops/v1/topics/{topic}/messages`. */
export const registerTopicRoutes = (
  app: FastifyInstance,
  { authorize, store, relay, topicPrefix }: TopicRoutes,
): void => {
  const partitions = (): Partitions => relay.partitions() ?? PARTITIONS_UNSET;
  const reader = openTopicReader({ store, partitions });

  app.get('/ops/v1/topics', { onRequest: authorize }, async (request, reply) => {
    if (!speaksForAll(request, reply)) return reply;
    const topics = TOPICS.map((topic) => ({
      topic,
      name: topicName(topicPrefix, topic),
      key: 'paymentId',
      cleanup: CLEANUP[topic],
      partitions: partitions()[topic],
    }));
    return reply.type(JSON_TYPE).send(JSON.stringify({ topics, relay: relay.status() }));
  });

  app.get<{ Params: { topic: string }; Querystring: Query }>(
    '/ops/v1/topics/:topic/messages',
    { onRequest: authorize },
    async (request, reply) => {
      if (!speaksForAll(request, reply)) return reply;
      const { topic } = request.params;
      const { from = 'start', limit } = request.query;
      if (!isTopic(topic)) return reject(reply, 'NOT_FOUND');
      const events = Array.isArray(limit) ? undefined : parseLimit(limit);
      if (events === undefined) {
        return reject(reply, 'INVALID_REQUEST', [`limit must be a number from 1 to ${LIMIT_MAX}`]);
      }
      const page = Array.isArray(from)
        ? undefined
        : await reader.page(topic, from === 'start' ? null : from, events);
      if (page === undefined) {
        return reject(reply, 'INVALID_REQUEST', ['from must be start or the position of an event']);
      }
      return reply
        .type('application/x-ndjson')
        .header('next-position', page.next ?? 'start')
        .send(page.messages.map(({ value }) => `${value}\n`).join(''));
    },
  );
};
