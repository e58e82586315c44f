/** The event feed on Kafka. Sends of kafkajs must not overlap, and go on when they are given up. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Admin } from 'kafkajs';
import {
  type EventFeed,
  FeedUnavailable,
  PARTITIONS_DEFAULT,
  type Partitions,
  TOPICS,
  type Topic,
  topicName,
} from '../port.ts';
import { type KafkaOptions, openConnection, TIMEOUTS_MS } from './kafka-connection.ts';

/** With as many brokers, an acknowledgement needs two of them. */
const REPLICAS_MAX = 3;
const FOR_EVER = [
  { name: 'cleanup.policy', value: 'delete' },
  { name: 'retention.ms', value: '-1' },
];
const TOPIC_SETTINGS: Record<Topic, { name: string; value: string }[]> = {
  // Events are never deleted unless an operator sets it so: a new consumer starts at the first one.
  events: FOR_EVER,
  state: [{ name: 'cleanup.policy', value: 'compact' }],
  seals: FOR_EVER,
};

const UNKNOWN_TOPIC = 'UNKNOWN_TOPIC_OR_PARTITION';
const NEW_TOPIC_LOOK_MS = 50;

/** A topic that was made a moment ago is not known to every broker yet. */
const unknownAsNone = (error: unknown): Awaited<ReturnType<Admin['fetchTopicMetadata']>> => {
  if (Object(error).type === UNKNOWN_TOPIC) return { topics: [] };
  throw error;
};

const createTopics = async (admin: Admin, names: Map<string, Topic>): Promise<void> => {
  const { brokers } = await admin.describeCluster();
  await admin.createTopics({
    // kafkajs waits only for topics that the broker knows already, so waitForLeaders below does it.
    waitForLeaders: false,
    topics: [...names].map(([topic, kind]) => ({
      topic,
      numPartitions: PARTITIONS_DEFAULT[kind],
      replicationFactor: Math.min(REPLICAS_MAX, brokers.length),
      configEntries: [
        ...TOPIC_SETTINGS[kind],
        { name: 'min.insync.replicas', value: brokers.length >= REPLICAS_MAX ? '2' : '1' },
      ],
    })),
  });
};

const waitForLeaders = async (admin: Admin, names: Map<string, Topic>, ended: () => boolean) => {
  const found: Partitions = { events: 0, state: 0, seals: 0 };
  for (const [name, kind] of names) {
    while (!ended()) {
      const { topics } = await admin.fetchTopicMetadata({ topics: [name] }).catch(unknownAsNone);
      const partitions = topics[0]?.partitions ?? [];
      found[kind] = partitions.length;
      if (partitions.length > 0 && partitions.every(({ leader }) => leader >= 0)) break;
      await delay(NEW_TOPIC_LOOK_MS);
    }
  }
  return found;
};

/** Once every partition has a leader; makes missing topics. Stops waiting once `ended` is true. */
const findPartitions = async (admin: Admin, names: Map<string, Topic>, ended: () => boolean) => {
  await admin.connect();
  // Metadata of a topic by its name can make the topic, with the broker's default partition count.
  const there = new Set(await admin.listTopics());
  const missing = new Map([...names].filter(([name]) => !there.has(name)));
  if (missing.size > 0) await createTopics(admin, missing);
  return waitForLeaders(admin, names, ended);
};

type KafkaConnection = ReturnType<typeof openConnection>;

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
          const left = client.inTime('disconnect', timeoutsMs.close, admin.disconnect());
          await left.catch(() => undefined);
        }
      }),
    overtake: async () => {
      connection?.drop();
      connection = undefined;
      // Each connection's producer takes the next epoch of the transactional id.
      await attempt((client) => client.producer());
    },
    publish: (topic, messages) =>
      attempt(async (client) => {
        const producer = await client.producer();
        const sent = producer.send({
          topic: topicName(options.topicPrefix, topic),
          acks: -1,
          timeout: timeoutsMs.request,
          messages: messages.map(({ partition, key, value, headers, timestampMs }) => {
            const timestamp = String(timestampMs);
            return { partition, key, value, headers: { ...headers }, timestamp };
          }),
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
