/** One client of Kafka that can be dropped: nothing that it was sending arrives after that. */
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

/** The time-out of each step, in milliseconds. */
export const TIMEOUTS_MS = {
  connect: 2_000,
  request: 5_000,
  admin: 10_000,
  send: 20_000,
  close: 2_000,
};
const RETRY = { retries: 8, initialRetryTime: 100, maxRetryTime: 1_000, multiplier: 2 };

// kafkajs checks for pending requests a thousand times a second, also where none is pending, with a
// negative time-out of which Node warns: a twentieth of a core for an idle connection. The code of
// kafkajs that adds a pending request schedules the check itself, so the others can be left out.
const { prototype: queue } = RequestQueue;
const check = queue.scheduleCheckPendingRequests;
queue.scheduleCheckPendingRequests = function onlyWherePending(this: typeof queue): void {
  if (this.pending.length > 0) check.call(this);
};

const reasonOf = (error: unknown): string =>
  error instanceof Error ? `${error.name}: ${error.message}` : 'unknown';

const droppedError = (): Error => new Error('this client was dropped');

/** One client with its producer. After `drop` it never reaches the broker again. */
export const openConnection = ({ brokers }: KafkaOptions, timeoutsMs: typeof TIMEOUTS_MS) => {
  const sockets = new Set<Socket>();
  const dropped = new AbortController();

  // kafkajs goes on retrying a send that this service has given up, on new connections: such messages
  // would arrive after newer ones. A dropped client therefore gets no socket.
  const socketFactory: ISocketFactory = ({ host, port, onConnect }) => {
    const socket = connect({ host, port }, onConnect).setKeepAlive(true, 60_000);
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    if (dropped.signal.aborted) socket.destroy(droppedError());
    return socket;
  };

  const kafka = new Kafka({
    clientId: 'payments',
    // A dropped client gets no address, so that its retries end at once.
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

  /** Waits for a step. Throws FeedUnavailable when it fails, takes too long, or the client is dropped. */
  const inTime = async <T>(what: string, timeoutMs: number, step: Promise<T>): Promise<T> => {
    const late = (): Error => new Error(`not done after ${timeoutMs} ms`);
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
      dropped.abort(droppedError());
      // kafkajs does not notice a socket that closes without an error.
      for (const socket of sockets) socket.destroy(droppedError());
      // Ends the producer's timers. Its own errors change nothing: the client is dropped already.
      producer.disconnect().catch(() => undefined);
    },
    end: () => inTime('disconnect', timeoutsMs.close, producer.disconnect()),
  };
};

export type KafkaConnection = ReturnType<typeof openConnection>;
