/**
 * The event feed on Kafka. This folder alone imports kafkajs, whose habits shape these files: its
 * sends must not overlap, its calls can take for ever, and a send that was given up goes on by itself.
 */
import { FeedUnavailable } from './errors.ts';
import {
  type KafkaConnection,
  type KafkaOptions,
  openConnection,
  TIMEOUTS_MS,
} from './kafka-connection.ts';
import { findPartitions } from './kafka-topics.ts';
import { type EventFeed, TOPICS, topicName } from './port.ts';

/** A feed that connects when it is first used, and anew after any error. */
export const kafkaFeed = (options: KafkaOptions): EventFeed => {
  const timeoutsMs = { ...TIMEOUTS_MS, ...options.timeoutsMs };
  const names = new Map(TOPICS.map((topic) => [topicName(options.topicPrefix, topic), topic]));
  let connection: KafkaConnection | undefined;
  let closed = false;

  /** Whatever failed, its outcome is unknown: the next attempt has a client and producer of its own. */
  const attempt = async <T>(step: (own: KafkaConnection) => Promise<T>): Promise<T> => {
    if (closed) throw new FeedUnavailable('Kafka: the feed is closed');
    connection ??= openConnection(options, timeoutsMs);
    const own = connection;
    try {
      return await step(own);
    } catch (error) {
      own.drop();
      if (connection === own) connection = undefined;
      throw error;
    }
  };

  return {
    partitions: () =>
      attempt(async (own) => {
        const admin = own.admin();
        let ended = false;
        const found = findPartitions(admin, names, () => ended);
        try {
          return await own.inTime('see to the topics', timeoutsMs.admin, found);
        } finally {
          ended = true;
          await own
            .inTime('disconnect', timeoutsMs.close, admin.disconnect())
            .catch(() => undefined);
        }
      }),
    publish: (topic, messages) =>
      attempt(async (own) => {
        const producer = await own.producer();
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
        await own.inTime('send', timeoutsMs.send, sent);
      }),
    close: async () => {
      closed = true;
      const own = connection;
      connection = undefined;
      await own?.end().catch(() => undefined);
      own?.drop();
    },
  };
};
