/**
 * The event feed on Kafka. Only this folder imports kafkajs, and works around it: its sends must not
 * overlap, its calls may never end, and it retries a send that was given up.
 */

import {
  type KafkaConnection,
  type KafkaOptions,
  openConnection,
  TIMEOUTS_MS,
} from './kafka-connection.ts';
import { findPartitions } from './kafka-topics.ts';
import { type EventFeed, FeedUnavailable, TOPICS, topicName } from './port.ts';

export const kafkaFeed = (options: KafkaOptions): EventFeed => {
  const timeoutsMs = { ...TIMEOUTS_MS, ...options.timeoutsMs };
  const names = new Map(TOPICS.map((topic) => [topicName(options.topicPrefix, topic), topic]));
  let connection: KafkaConnection | undefined;
  let closed = false;

  /** After an error the outcome is unknown: the client is dropped, and the next attempt opens another. */
  const attempt = async <T>(step: (client: KafkaConnection) => Promise<T>): Promise<T> => {
    if (closed) throw new FeedUnavailable('Kafka: the feed is closed');
    connection ??= openConnection(options, timeoutsMs);
    const client = connection;
    try {
      return await step(client);
    } catch (error) {
      client.drop();
      if (connection === client) connection = undefined;
      throw error;
    }
  };

  return {
    partitions: () =>
      attempt(async (client) => {
        const admin = client.admin();
        let ended = false;
        const found = findPartitions(admin, names, () => ended);
        try {
          return await client.inTime('find or make the topics', timeoutsMs.admin, found);
        } finally {
          ended = true;
          await client
            .inTime('disconnect', timeoutsMs.close, admin.disconnect())
            .catch(() => undefined);
        }
      }),
    publish: (topic, messages) =>
      attempt(async (client) => {
        const producer = await client.producer();
        const sent = producer.send({
          topic: topicName(options.topicPrefix, topic),
          acks: -1,
          timeout: timeoutsMs.request,
          messages: messages.map(({ partition, key, value, headers, timestampMs }) => ({
            partition,
            key,
            value,
            headers: { ...headers },
            timestamp: String(timestampMs),
          })),
        });
        await client.inTime('send', timeoutsMs.send, sent);
      }),
    close: async () => {
      closed = true;
      const client = connection;
      connection = undefined;
      await client?.end().catch(() => undefined);
      client?.drop();
    },
  };
};
