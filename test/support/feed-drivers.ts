/** The drivers of the event-feed port, for test/topics/describe-event-feed.ts. */
import { Kafka, logLevel } from 'kafkajs';
import { kafkaFeed } from '../../topics/kafka/kafka.ts';
import { type EventFeed, type Topic, topicName } from '../../topics/port.ts';
import type { Driver } from './describe-driver.ts';
import { memoryFeed } from './memory-feed.ts';
import { until } from './until.ts';

type StoredMessage = {
  partition: number;
  key: string;
  value: string;
  headers: Record<string, string>;
  timestampMs: number;
};

export type FeedUnderTest = {
  /** Opens the same feed, as the next start of the service would. */
  open(): EventFeed;
  /** The first `count` messages of a topic, each partition's in order. */
  read(topic: Topic, count: number): Promise<StoredMessage[]>;
  /** Makes a topic before the service does; undefined where there is no broker to do it on. */
  makeTopic?(topic: Topic, partitions: number): Promise<void>;
  remove(): Promise<void>;
};

export type FeedDriver = Driver & {
  make(): Promise<FeedUnderTest>;
};

const { KAFKA_SASL_MECHANISM, KAFKA_SASL_USERNAME, KAFKA_SASL_PASSWORD } = process.env;
/** The login of the broker under test; none for one that `npm run engines` starts in plain text. */
const LOGIN =
  KAFKA_SASL_MECHANISM && KAFKA_SASL_USERNAME && KAFKA_SASL_PASSWORD
    ? { username: KAFKA_SASL_USERNAME, password: KAFKA_SASL_PASSWORD }
    : undefined;

const kafkaClient = (brokers: readonly string[], retries = 3): Kafka =>
  new Kafka({
    clientId: 'test',
    brokers: [...brokers],
    logLevel: logLevel.NOTHING,
    retry: { retries, initialRetryTime: 50 },
    connectionTimeout: 2_000,
    ...(LOGIN && { sasl: { mechanism: 'plain' as const, ...LOGIN } }),
  });

/** How many messages a topic has, repeats and all. */
export const countMessages = async (brokers: readonly string[], topic: string): Promise<number> => {
  const admin = kafkaClient(brokers, 10).admin();
  await admin.connect();
  try {
    const partitions = await admin.fetchTopicOffsets(topic);
    return partitions.reduce((sum, { high, low }) => sum + Number(high) - Number(low), 0);
  } finally {
    await admin.disconnect();
  }
};

/** Reads a topic from its start with a group of its own until so many messages are there. */
export const readTopic = async (
  brokers: readonly string[],
  topic: string,
  count: number,
): Promise<StoredMessage[]> => {
  const groupId = `test-${crypto.randomUUID()}`;
  const consumer = kafkaClient(brokers, 10).consumer({ groupId, maxWaitTimeInMs: 100 });
  const read: StoredMessage[] = [];
  await consumer.connect();
  try {
    await consumer.subscribe({ topic, fromBeginning: true });
    await consumer.run({
      eachMessage: async ({ partition, message: { key, value, headers = {}, timestamp } }) => {
        const texts = Object.entries(headers).map(([name, header]) => [name, String(header)]);
        read.push({
          partition,
          key: String(key),
          value: String(value),
          headers: Object.fromEntries(texts),
          timestampMs: Number(timestamp),
        });
      },
    });
    await until(`${count} messages of ${topic}`, () => read.length >= count);
    return read;
  } finally {
    await consumer.disconnect();
  }
};

const makeKafka = async (brokers: readonly string[]): Promise<FeedUnderTest> => {
  const topicPrefix = `test-${crypto.randomUUID()}`;
  const admin = kafkaClient(brokers).admin();
  await admin.connect();
  return {
    open: () =>
      kafkaFeed({ brokers, topicPrefix, sasl: LOGIN && { mechanism: 'PLAIN', ...LOGIN } }),
    read: (topic, count) => readTopic(brokers, topicName(topicPrefix, topic), count),
    makeTopic: async (topic, numPartitions) => {
      const name = topicName(topicPrefix, topic);
      await admin.createTopics({ waitForLeaders: false, topics: [{ topic: name, numPartitions }] });
    },
    remove: async () => {
      const all = await admin.listTopics();
      const topics = all.filter((name) => name.startsWith(topicPrefix));
      if (topics.length > 0) await admin.deleteTopics({ topics });
      await admin.disconnect();
    },
  };
};

/** What a broker takes of one partition at once, unless it is set otherwise. */
const BROKER_BYTES_MAX = 1_048_588;

const makeMemory = async (): Promise<FeedUnderTest> => {
  const feed = memoryFeed();
  feed.takeAtMost(BROKER_BYTES_MAX);
  return {
    open: feed.client,
    read: async (topic) => feed.stored(topic).map((message) => ({ ...message })),
    remove: async () => undefined,
  };
};

const BROKERS = process.env.KAFKA_BROKERS?.split(',').map((broker) => broker.trim()) ?? [];

const whyNotKafka = async (): Promise<string | undefined> => {
  if (BROKERS.length === 0)
    return 'KAFKA_BROKERS is not set; npm run engines -- up starts a broker';
  const admin = kafkaClient(BROKERS, 1).admin();
  try {
    await admin.connect();
    return undefined;
  } catch {
    return `KAFKA_BROKERS: nothing answers at ${BROKERS.join(', ')}`;
  } finally {
    await admin.disconnect().catch(() => undefined);
  }
};

export const memoryFeedDriver: FeedDriver = { name: 'memory', make: makeMemory };
export const kafkaFeedDriver: FeedDriver = {
  name: 'kafka',
  skip: await whyNotKafka(),
  make: () => makeKafka(BROKERS),
};
