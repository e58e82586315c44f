/**
 * The relay sends each event of a payment, the state after it, and each seal to the feed; after a fault, the
 * same bytes again. Commands and reads never wait for it. An event that cannot be read parks its payment, so no
 * reader meets a gap; it is tried again on request and, once the relay has caught up, after each start.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { followPaymentStates } from '../shared/event-store/payment-states.ts';
import type { EventStore, LogEvent, Position } from '../shared/event-store/port.ts';
import { type KeyDocument, openKeyDocument } from '../shared/read-models/key-document.ts';
import type { BackOff } from '../shared/runtime/back-off.ts';
import type { Config } from '../shared/runtime/config.ts';
import { reasonOf } from '../shared/runtime/error-text.ts';
import type { Logger } from '../shared/runtime/log.ts';
import { oneAfterAnother } from '../shared/runtime/scheduling.ts';
import { isTracing } from '../shared/runtime/tracing.ts';
import { StandingBy } from '../shared/subscription/errors.ts';
import { createLag, type Lag } from '../shared/subscription/lag.ts';
import {
  misfitOf,
  runSubscription,
  type Subscriber,
  type Subscription,
} from '../shared/subscription/subscription.ts';
import { openOwnCheckpoint } from './checkpoint.ts';
import { RelayHalted, RelayNotReady, RelayOff } from './errors.ts';
import { type EventFeed, type Partitions, TOPICS } from './port.ts';
import { finishParked, overtake, sendBatch, sendParked } from './publisher.ts';
import type { RelayStatus } from './status.ts';
import { tracedFeed } from './traces.ts';

export type RelayOptions = {
  store: Pick<EventStore, 'subscribe' | 'readStream' | 'readAll' | 'end' | 'head' | 'hashAt'>;
  feed: EventFeed;
  checkpoint: KeyDocument;
  logger: Logger;
  mayRun: () => boolean;
  backOff?: BackOff;
  waitsMs?: Partial<typeof WAITS_MS>;
};

const WAITS_MS = {
  /** Between two looks whether this process may run. */
  standBy: 500,
  /** After so long without a response the relay counts as backing off. */
  silence: 5_000,
  /** Between two looks at the topics' partition counts. */
  recheck: 60_000,
  /** Brokers forget a transactional id that nothing has used for a week, and with it who came after whom. */
  overtakeAgain: 86_400_000,
  stop: 2_000,
};

/** Each takes some 10 ms, and batches wait meanwhile. */
export const RETRIED_MAX = 100;

const rejectChange = (known: Partitions, found: Partitions): void => {
  for (const topic of TOPICS) {
    if (known[topic] === found[topic]) continue;
    throw new RelayHalted(
      `the ${topic} topic has ${found[topic]} partitions and had ${known[topic]}: payments would change their partition and lose their order; give the topic its old count back, or publish under another KAFKA_TOPIC_PREFIX`,
    );
  }
};

const prepare = (options: RelayOptions) => ({
  ...options,
  checkpoint: openOwnCheckpoint(options.checkpoint),
  states: followPaymentStates(options.store),
  published: 0,
  overtookAtMs: 0,
  sendingSinceMs: undefined as number | undefined,
  waitsMs: { ...WAITS_MS, ...options.waitsMs },
  stopping: new AbortController(),
  standingBy: false,
  /** Only while every message that was sent is acknowledged, a parked payment may be sent. */
  allAcknowledged: false,
  lookedAtPartitionsMs: 0,
});
type Running = ReturnType<typeof prepare>;

const waitForTurn = async (relay: Running): Promise<void> => {
  const { checkpoint, mayRun, waitsMs, stopping } = relay;
  checkpoint.leave();
  for (;;) {
    // A document that cannot be read is reported where the checkpoint is taken.
    await checkpoint.read().catch(() => undefined);
    relay.standingBy = !mayRun();
    if (!relay.standingBy) return;
    await delay(waitsMs.standBy, undefined, { signal: stopping.signal });
  }
};

const findPartitions = async (relay: Running): Promise<Partitions> => {
  const found = await relay.feed.partitions();
  relay.lookedAtPartitionsMs = performance.now();
  return found;
};

/** An operator may have changed the count at the broker. */
const recheckPartitions = async (relay: Running): Promise<void> => {
  const { lookedAtPartitionsMs, waitsMs, checkpoint } = relay;
  if (performance.now() - lookedAtPartitionsMs <= waitsMs.recheck) return;
  rejectChange(checkpoint.value().partitions, await findPartitions(relay));
};

const start = async (relay: Running): Promise<Position | null> => {
  const { store, checkpoint } = relay;
  const found = await findPartitions(relay);
  const taken = await checkpoint.take(found);
  rejectChange(taken.partitions, found);
  const { position, hash } = taken;
  const misfit = await misfitOf(store, position, hash);
  if (misfit !== undefined)
    throw new RelayHalted(
      `the event log ${misfit} the checkpoint of the relay (${position}): it was changed, cut, or restored from another copy, and the topics hold events that it does not; put the right log back`,
    );
  await overtake(relay);
  await finishParked(relay);
  return checkpoint.value().position;
};

const idsOfParked = ({ checkpoint }: Running): string[] => Object.keys(checkpoint.value().parked);

const deliver = async (relay: Running, events: LogEvent[]): Promise<void> => {
  if (!relay.mayRun()) throw new Error('another process relays');
  await recheckPartitions(relay);
  if (performance.now() - relay.overtookAtMs > relay.waitsMs.overtakeAgain) await overtake(relay);
  await sendBatch(relay, events);
};

const positionIn = ({ checkpoint }: Running): Position | null =>
  checkpoint.known()?.position ?? null;

const stateOf = (
  { standingBy, sendingSinceMs = performance.now(), waitsMs }: Running,
  { state, error }: ReturnType<Subscription['status']>,
): Pick<RelayStatus, 'state' | 'error'> => {
  const own = error === undefined ? { state } : { state, error };
  if (state === 'halted') return own;
  if (state === 'stopped') return { state };
  if (standingBy) return { state: 'standing-by' };
  if (performance.now() - sendingSinceMs > waitsMs.silence)
    return { state: 'backing-off', error: 'the broker does not answer' };
  return own;
};

const statusOf = (relay: Running, subscription: Subscription): RelayStatus => {
  const { checkpoint, published } = relay;
  const now = subscription.status();
  return {
    ...stateOf(relay, now),
    checkpoint: positionIn(relay),
    parked: Object.keys(checkpoint.known()?.parked ?? {}).length,
    counts: { published, restarts: now.restarts },
  };
};

const rejectNotReady = (relay: Running, subscription: Subscription): void => {
  const { state, error = 'no reason is known' } = statusOf(relay, subscription);
  const { aborted: stopping } = relay.stopping.signal;
  if (stopping || state === 'standing-by' || !relay.mayRun())
    throw new StandingBy('another process relays');
  if (state === 'halted') throw new RelayNotReady(`the relay has halted: ${error}`);
  if (relay.allAcknowledged && state === 'running') return;
  const now = state === 'backing-off' ? `backs off (${error})` : `is ${state}`;
  throw new RelayNotReady(`the relay ${now}; it tries parked payments once it has caught up`);
};

const retry = async (relay: Running, paymentId: string | undefined) => {
  await recheckPartitions(relay);
  const ids = idsOfParked(relay).filter((id) => paymentId === undefined || id === paymentId);
  return sendParked(relay, ids.slice(0, RETRIED_MAX));
};

type InTurn = <T>(step: () => Promise<T>) => Promise<T>;

const subscriberOf = (relay: Running, inTurn: InTurn): Subscriber => ({
  start: async () => {
    relay.allAcknowledged = false;
    await waitForTurn(relay);
    return inTurn(() => start(relay));
  },
  events: (events) => inTurn(() => deliver(relay, events)),
  // The messages of before this start were sent again and acknowledged: now come the parked ones.
  caughtUp: () =>
    inTurn(async () => {
      if (!relay.allAcknowledged) await sendParked(relay, idsOfParked(relay));
      relay.allAcknowledged = true;
    }),
  halts: (error) => {
    if (!(error instanceof RelayHalted)) return false;
    const { message: reason } = error;
    relay.logger.error({ reason }, 'relay halted: it cannot go on until an operator acts');
    return true;
  },
});

/** An engine out of reach is no error: the relay waits for it. */
export const startRelay = (options: RelayOptions) => {
  const { store, feed, checkpoint: document, logger, backOff } = options;
  const relay = prepare(options);
  const { checkpoint, mayRun, waitsMs, stopping } = relay;
  const turns = oneAfterAnother();

  const inTurn: InTurn = (step) =>
    turns(() =>
      step().catch((error: unknown) => {
        relay.allAcknowledged = false;
        throw error;
      }),
    );

  const subscriber = subscriberOf(relay, inTurn);
  const subscription = runSubscription({ store, logger, backOff, subscriber });

  // The turn is lost without an event of the log: from then on the other relay's checkpoint counts.
  const watch = setInterval(() => {
    if (checkpoint.taken() !== undefined && !mayRun()) subscription.restart();
  }, waitsMs.standBy);
  watch.unref();

  return {
    /** Undefined when off. Throws StoreUnavailable. */
    lag: createLag(store, () => positionIn(relay)) as () => Promise<Lag | undefined>,
    partitions: () => checkpoint.known()?.partitions,
    status: () => statusOf(relay, subscription),
    /** By paymentId. Throws RelayNotReady. */
    parked: async () => {
      const unread = (error: unknown): never => {
        throw new RelayNotReady(`the checkpoint of the relay cannot be read: ${reasonOf(error)}`);
      };
      return (checkpoint.taken() ?? (await checkpoint.read().catch(unread)))?.parked ?? {};
    },
    /** Tries one parked payment, or up to RETRIED_MAX of them. Throws StandingBy and RelayNotReady. */
    retryParked: async (paymentId?: string) => {
      rejectNotReady(relay, subscription);
      try {
        return await inTurn(async () => {
          rejectNotReady(relay, subscription);
          return retry(relay, paymentId);
        });
      } catch (error) {
        // The next start sends first what may have left.
        subscription.restart();
        if (error instanceof StandingBy || error instanceof RelayNotReady) throw error;
        throw new RelayNotReady(
          `the relay was interrupted, and goes on by itself: ${reasonOf(error)}`,
        );
      }
    },
    /** Resolves within a few seconds, whatever the broker does. */
    stop: async (): Promise<void> => {
      clearInterval(watch);
      stopping.abort();
      const ended = subscription.stop();
      await Promise.race([ended, delay(waitsMs.stop, undefined, { ref: false })]);
      await feed.close();
      await ended;
      // A retry under way ends at the closed feed.
      await turns(async () => undefined);
      await document.close();
    },
  };
};
export type Relay = ReturnType<typeof startRelay>;

type OpenRelay = Pick<RelayOptions, 'store' | 'logger'> & {
  config: Pick<Config, 'kafka' | 'mongoUrl'>;
  fileOf(name: string): string;
  /** False where another process has the projector's lease, which decides who relays. */
  mayRun(): boolean;
};

const counts = { published: 0, restarts: 0 };
const OFF: RelayStatus = { state: 'off', checkpoint: null, parked: 0, counts };

/** No checkpoint moves: a broker that is set later gets every event from the first one on. */
export const noRelay = (): Relay => ({
  status: () => OFF,
  lag: async () => undefined,
  partitions: () => undefined,
  parked: async () => ({}),
  retryParked: async () => {
    throw new RelayOff('no broker is set (KAFKA_BROKERS): nothing is sent, nothing is parked');
  },
  stop: async () => undefined,
});

/** A broker or a MongoDB out of reach does not delay the start. */
export const openRelay = async (options: OpenRelay): Promise<Relay> => {
  const { config, store, logger, mayRun } = options;
  if (config.kafka === undefined) return noRelay();
  const { kafkaFeed } = await import('./kafka/kafka.ts');
  const feed = kafkaFeed(config.kafka);
  return startRelay({
    store,
    feed: isTracing() ? tracedFeed(feed, config.kafka.topicPrefix) : feed,
    // Apart from the read models: after a wipe or a rebuild, no message is sent again.
    checkpoint: await openKeyDocument(options, 'relay-checkpoint'),
    logger,
    mayRun,
  });
};
