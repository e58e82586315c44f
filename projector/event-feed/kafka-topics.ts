/** The feed's topics at Kafka: made where they are missing, and otherwise left as they are. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Admin } from 'kafkajs';
import { PARTITIONS_DEFAULT, type Partitions, type Topic } from './port.ts';

/** Kafka's own limit: an answer needs this many copies of a message, where there are as many. */
const REPLICAS_MAX = 3;
const TOPIC_SETTINGS: Record<Topic, { name: string; value: string }[]> = {
  // Kept for ever unless the operator says otherwise: a new reader starts at the beginning.
  events: [
    { name: 'cleanup.policy', value: 'delete' },
    { name: 'retention.ms', value: '-1' },
  ],
  state: [{ name: 'cleanup.policy', value: 'compact' }],
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
    // kafkajs waits only where the broker knows the topics already, which takes it a moment.
    waitForLeaders: false,
    topics: [...names].map(([topic, kind]) => ({
      topic,
      numPartitions: PARTITIONS_DEFAULT,
      replicationFactor: Math.min(REPLICAS_MAX, brokers.length),
      configEntries: [
        ...TOPIC_SETTINGS[kind],
        { name: 'min.insync.replicas', value: brokers.length >= REPLICAS_MAX ? '2' : '1' },
      ],
    })),
  });
};

/** The partitions of the topics, once every one of them has a leader; bounded by the caller. */
const untilLed = async (
  admin: Admin,
  names: Map<string, Topic>,
  ended: () => boolean,
): Promise<Partitions> => {
  const found: Partitions = { events: 0, state: 0 };
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

/**
 * How many partitions the topics have, once every one of them has a leader. Goes on until `ended`
 * says that nobody waits for it any more.
 */
export const findPartitions = async (
  admin: Admin,
  names: Map<string, Topic>,
  ended: () => boolean,
): Promise<Partitions> => {
  await admin.connect();
  // Asking for a topic by its name can make it, with the broker's idea of partitions.
  const there = new Set(await admin.listTopics());
  const missing = new Map([...names].filter(([name]) => !there.has(name)));
  if (missing.size > 0) await createTopics(admin, missing);
  return untilLed(admin, names, ended);
};
