/** One client of Kafka, which can be given up for good: a send that was given up is never sent later. */
import { connect, type Socket } from 'node:net';
import { type ISocketFactory, Kafka, logLevel, Partitioners, type Producer } from 'kafkajs';
import RequestQueue from 'kafkajs/src/network/requestQueue/index.js';
import { within } from '../../shared/runtime/back-off.ts';
import { FeedUnavailable } from './errors.ts';

export type KafkaOptions = {
  /** Each `host:port`. */
  brokers: readonly string[];
  topicPrefix: string;
  /** Tests shorten them. */
  timeoutsMs?: Partial<typeof TIMEOUTS_MS>;
};

/** Bounds of each step, in milliseconds. */
export const TIMEOUTS_MS = {
  connect: 2_000,
  request: 5_000,
  admin: 10_000,
  send: 20_000,
  close: 2_000,
};
const RETRY = { retries: 8, initialRetryTime: 100, maxRetryTime: 1_000, multiplier: 2 };

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
export const openConnection = ({ brokers }: KafkaOptions, timeoutsMs: typeof TIMEOUTS_MS) => {
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

export type KafkaConnection = ReturnType<typeof openConnection>;
