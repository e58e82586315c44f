/** A client of Kafka that can be dropped: nothing that it was sending arrives after that. */
import { connect, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { type ISocketFactory, Kafka, logLevel, Partitioners, type SASLOptions } from 'kafkajs';
import { within } from '../../shared/runtime/back-off.ts';
import { FeedUnavailable, MessageTooLarge } from '../port.ts';
import { correct } from './kafkajs-corrections.ts';

export type KafkaOptions = {
  brokers: readonly string[];
  topicPrefix: string;
  /** Undefined: plain text. `ca` holds certificates in PEM; undefined: Node's own list. */
  tls?: { ca: string | undefined } | undefined;
  sasl?: { mechanism: string; username: string; password: string } | undefined;
  timeoutsMs?: Partial<typeof TIMEOUTS_MS>;
};

export const TIMEOUTS_MS = {
  connect: 2_000,
  request: 5_000,
  admin: 10_000,
  send: 20_000,
  close: 2_000,
};
const RETRY = { retries: 8, initialRetryTime: 100, maxRetryTime: 1_000, multiplier: 2 };

/** A line, and the errors it is of: codes of Node, types of Kafka's protocol, names of kafkajs. */
const CAUSES: readonly (readonly [line: string, ...codes: unknown[]])[] = [
  [
    'the brokers reject the login: KAFKA_SASL_USERNAME, KAFKA_SASL_PASSWORD or KAFKA_SASL_MECHANISM is not theirs',
    ...['KafkaJSSASLAuthenticationError', 'SASL_AUTHENTICATION_FAILED'],
    ...['UNSUPPORTED_SASL_MECHANISM', 'ILLEGAL_SASL_STATE'],
  ],
  ["the broker's certificate has expired", 'CERT_HAS_EXPIRED'],
  [
    "the broker's certificate is not signed by an authority of KAFKA_CA_FILE",
    ...['DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN'],
    ...['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'UNABLE_TO_GET_ISSUER_CERT'],
    'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  ],
  [
    "the broker's certificate names another host than KAFKA_BROKERS",
    'ERR_TLS_CERT_ALTNAME_INVALID',
  ],
  [
    'the broker does not speak TLS on this port',
    ...['ERR_SSL_WRONG_VERSION_NUMBER', 'ERR_SSL_PACKET_LENGTH_TOO_LONG'],
  ],
  [
    'no broker coordinates the transactional id: the login needs the right to write under it, and a single broker transaction.state.log.replication.factor=1',
    ...['KafkaJSGroupCoordinatorNotFound', 'TRANSACTIONAL_ID_AUTHORIZATION_FAILED'],
  ],
  ['another projector has begun to send to these topics', 'INVALID_PRODUCER_EPOCH'],
];

const CAUSES_DEEP_MAX = 4;

/** kafkajs wraps an error into others. */
const causeOf = (error: unknown, depth = 0): string | undefined => {
  const { code, type, name, cause } = Object(error);
  const [line] =
    CAUSES.find(([, ...of]) => [code, type, name].some((one) => of.includes(one))) ?? [];
  return line ?? (depth < CAUSES_DEEP_MAX ? causeOf(cause, depth + 1) : undefined);
};

const reasonOf = (error: unknown): string => {
  if (!(error instanceof Error)) return 'unknown';
  const { cause } = error;
  const inner = error.name === 'KafkaJSNonRetriableError' && cause instanceof Error ? cause : error;
  return causeOf(error) ?? `${inner.name}: ${inner.message}`;
};

const TOO_LARGE = ['MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE'];

const isTooLarge = (error: unknown): boolean =>
  [error, Object(error).cause].some((one) => TOO_LARGE.includes(Object(one).type));

const asFeedError = (what: string, error: unknown): Error => {
  const text = `Kafka: could not ${what} (${reasonOf(error)})`;
  return isTooLarge(error) ? new MessageTooLarge(text) : new FeedUnavailable(text);
};

const droppedError = (): Error => new Error('this client was dropped');

/** TLS sends no server name for an address (RFC 6066). */
const serverNameOf = (host: string) => (isIP(host) === 0 ? { servername: host } : {});

export const openConnection = (options: KafkaOptions, timeoutsMs: typeof TIMEOUTS_MS) => {
  const { brokers, tls, sasl } = options;
  const sockets = new Set<Socket>();
  const dropped = new AbortController();

  // kafkajs retries abandoned sends on new connections, behind newer messages: a dropped client gets no socket.
  const socketFactory: ISocketFactory = ({ host, port, onConnect }) => {
    const socket =
      tls === undefined
        ? connect({ host, port }, onConnect)
        : connectTls({ host, port, ...serverNameOf(host), ca: tls.ca }, onConnect);
    socket.setKeepAlive(true, 60_000);
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    if (dropped.signal.aborted) socket.destroy(droppedError());
    return socket;
  };

  const client = new Kafka({
    clientId: 'payments',
    // A dropped client gets no address, so that its retries end at once.
    brokers: () => (dropped.signal.aborted ? [] : [...brokers]),
    logLevel: logLevel.NOTHING,
    connectionTimeout: timeoutsMs.connect,
    requestTimeout: timeoutsMs.request,
    retry: RETRY,
    ssl: tls !== undefined,
    ...(sasl && { sasl: { ...sasl, mechanism: sasl.mechanism.toLowerCase() } as SASLOptions }),
    socketFactory,
  });
  const kafka = correct(client, `${options.topicPrefix}.relay`);
  const producer = kafka.producer({
    createPartitioner: Partitioners.DefaultPartitioner,
    idempotent: true,
    maxInFlightRequests: 1,
    allowAutoTopicCreation: false,
    retry: RETRY,
  });
  let connected = false;

  const inTime = async <T>(what: string, timeoutMs: number, step: Promise<T>): Promise<T> => {
    const late = (): Error => new Error(`not done after ${timeoutMs} ms`);
    try {
      return await within(timeoutMs, step, late, dropped.signal);
    } catch (error) {
      throw asFeedError(what, error);
    }
  };

  return {
    admin: () => kafka.admin(),
    inTime,
    producer: async () => {
      if (!connected) await inTime('connect', timeoutsMs.admin, producer.connect());
      connected = true;
      return producer;
    },
    drop: (): void => {
      dropped.abort(droppedError());
      // kafkajs does not notice a socket that closes without an error.
      for (const socket of sockets) socket.destroy(droppedError());
      // Ends the producer's timers. Its errors change nothing: the client is dropped already.
      producer.disconnect().catch(() => undefined);
    },
    end: () => inTime('disconnect', timeoutsMs.close, producer.disconnect()),
  };
};

/** For `payments doctor`. Throws FeedUnavailable with the likely cause. */
export const pingKafka = async (options: KafkaOptions): Promise<void> => {
  const client = openConnection(options, TIMEOUTS_MS);
  try {
    await client.inTime('connect', TIMEOUTS_MS.admin, client.admin().connect());
  } finally {
    client.drop();
  }
};
