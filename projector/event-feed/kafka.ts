/**
 * The event feed on Kafka. The only importer of kafkajs, whose habits shape this file: its sends
 * must not overlap, its calls can take for ever, and a send that was given up goes on by itself.
 */
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import {
  type Admin,
  type ISocketFactory,
  Kafka,
  logLevel,
  Partitioners,
  type Producer,
} from 'kafkajs';
import RequestQueue from 'kafkajs/src/network/requestQueue/index.js';
import { within } from '../../shared/runtime/back-off.ts';
import { FeedUnavailable } from './errors.ts';
import {
  type EventFeed,
  PARTITIONS_DEFAULT,
  type Partitions,
  TOPICS,
  type Topic,
  topicName,
} from './port.ts';

export type KafkaOptions = {
  /** Each `host:port`. */
  brokers: readonly string[];
  topicPrefix: string;
  /** Tests shorten them. */
  timeoutsMs?: Partial<typeof TIMEOUTS_MS>;
};

const TIMEOUTS_MS = { connect: 2_000, request: 5_000, admin: 10_000, send: 20_000, close: 2_000 };
/** Kafka's own limit: an answer needs this many copies of a message, where there are as many. */
const REPLICAS_MAX = 3;
const RETRY = { retries: 8, initialRetryTime: 100, maxRetryTime: 1_000, multiplier: 2 };

const TOPIC_SETTINGS: Record<Topic, { name: string; value: string }[]> = {
  // Kept for ever unless the operator says otherwise: a new reader starts at the beginning.
  events: [
    { name: 'cleanup.policy', value: 'delete' },
    { name: 'retention.ms', value: '-1' },
  ],
  state: [{ name: 'cleanup.policy', value: 'compact' }],
};

// kafkajs looks a thousand times a second, with a negative time-out of which Node warns, for requests
// that wait, also where none does: a twentieth of a core for a connection that is idle. Whoever adds
// one that waits asks for the look himself.
const { prototype: queue } = RequestQueue;
const look = queue.scheduleCheckPendingRequests;
queue.scheduleCheckPendingRequests = function whereSomeWait(this: typeof queue): void {
  if (this.pending.length > 0) look.call(this);
};

const reasonOf = (error: unknown): string =>
  error instanceof Error ? `${error.name}: ${error.message}` : 'unknown';

const givenUp = (): Error => new Error('this client was given up');

/** One client with its producer. Once dropped it never reaches the broker again. */
const openConnection = ({ brokers }: KafkaOptions, timeoutsMs: typeof TIMEOUTS_MS) => {
  const sockets = new Set<Socket>();
  const dropped = new AbortController();

  // kafkajs goes on retrying a send that we have given up, on connections of its own making: what
  // it sent then would arrive after newer messages. Without sockets it cannot.
  const socketFactory: ISocketFactory = ({ host, port, onConnect }) => {
    const socket = connect({ host, port }, onConnect).setKeepAlive(true, 60_000);
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    if (dropped.signal.aborted) socket.destroy(givenUp());
    return socket;
  };

  const kafka = new Kafka({
    clientId: 'payments',
    // Without an address its retries end at once.
    brokers: () => (dropped.signal.aborted ? [] : [...brokers]),
    logLevel: logLevel.NOTHING,
    connectionTimeout: timeoutsMs.connect,
    requestTimeout: timeoutsMs.request,
    retry: RETRY,
    socketFactory,
  });
  const producer = kafka.producer({
    createPartitioner: Partitioners.DefaultPartitioner,
    idempotent: true,
    maxInFlightRequests: 1,
    allowAutoTopicCreation: false,
    retry: RETRY,
  });
  let connected = false;

  /** The step, or FeedUnavailable when it fails, takes too long, or the client is dropped. */
  const inTime = async <T>(what: string, timeoutMs: number, step: Promise<T>): Promise<T> => {
    const late = (): Error => new Error(`no end of it after ${timeoutMs} ms`);
    try {
      return await within(timeoutMs, step, late, dropped.signal);
    } catch (error) {
      throw new FeedUnavailable(`Kafka: could not ${what} (${reasonOf(error)})`);
    }
  };

  return {
    admin: () => kafka.admin(),
    inTime,
    producer: async (): Promise<Producer> => {
      if (!connected) await inTime('connect', timeoutsMs.admin, producer.connect());
      connected = true;
      return producer;
    },
    drop: (): void => {
      dropped.abort(givenUp());
      // kafkajs does not notice a socket that closes without an error.
      for (const socket of sockets) socket.destroy(givenUp());
      // Its timers end with it; whether it says so is of no interest.
      producer.disconnect().catch(() => undefined);
    },
    end: () => inTime('disconnect', timeoutsMs.close, producer.disconnect()),
  };
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

const findPartitions = async (
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

/** A feed that connects when it is first used, and anew after any error. */
export const kafkaFeed = (options: KafkaOptions): EventFeed => {
  const timeoutsMs = { ...TIMEOUTS_MS, ...options.timeoutsMs };
  const names = new Map(TOPICS.map((topic) => [topicName(options.topicPrefix, topic), topic]));
  let connection: ReturnType<typeof openConnection> | undefined;
  let closed = false;

  /** Whatever failed, its outcome is unknown: the next attempt has a client and producer of its own. */
  const attempt = async <T>(
    step: (own: ReturnType<typeof openConnection>) => Promise<T>,
  ): Promise<T> => {
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
