/**
 * The relay: follows the log and sends each event, and the payment's state after it, to the feed.
 * Its place is the feed checkpoint, saved after the broker has everything; whatever breaks before
 * that, the same messages are sent again, to the byte. It never touches commands or reads.
 *
 * An event that cannot be read holds back its own payment and nothing else: nothing of that payment
 * is sent past it, so no reader meets a gap, and each start tries it again.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { EventStore, Position } from '../../shared/event-store/port.ts';
import type { BackOff } from '../../shared/runtime/back-off.ts';
import { type EventFeed, type Partitions, TOPICS } from '../event-feed/port.ts';
import { createLag, type Lag } from '../lag.ts';
import { misfitOf } from '../log-check.ts';
import { type Log, runSubscription, type Subscription } from '../subscription.ts';
import { openPlace } from './checkpoint/place.ts';
import type { KeyDocument } from './checkpoint/port.ts';
import { createPublisher, type StoredEvent } from './publisher.ts';

export type RelayOptions = {
  store: Pick<EventStore, 'subscribe' | 'readStream' | 'head' | 'hashAt'>;
  feed: EventFeed;
  checkpoint: KeyDocument;
  logger: Log;
  /** Where several processes could relay: true while this one may. Left out: always. */
  mayRun?: () => boolean;
  /** Waits after an error: from `minMs`, doubled each time with jitter, up to `maxMs`. */
  backOff?: BackOff;
  /** Tests shorten them. */
  waitsMs?: Partial<typeof WAITS_MS>;
};

export type RelayState =
  /** No broker is set: nothing is sent. */
  | 'off'
  | 'starting'
  /** Another process relays. */
  | 'standing-by'
  | 'running'
  /** Broker or store are out of reach, or silent; tried again without end. */
  | 'backing-off'
  /** Cannot go on without a person; `error` says why. */
  | 'halted'
  | 'stopped';

export type RelayStatus = {
  state: RelayState;
  error?: string;
  checkpoint: Position | null;
  /** Payments parked now, at an event that cannot be read or sent. */
  parked: number;
  /** Events sent and acknowledged, and starts after an error, since the start. */
  counts: { published: number; restarts: number };
};

export type Relay = {
  status(): RelayStatus;
  /** Measured now, against the store's own head; undefined when off. Throws StoreUnavailable. */
  lag(): Promise<Lag | undefined>;
  /** How many partitions the topics have; undefined until that is known. */
  partitions(): Partitions | undefined;
  /** Resolves within a few seconds, whatever the broker does. Closes feed and checkpoint. */
  stop(): Promise<void>;
};

const WAITS_MS = {
  /** Between two looks whether this process may run. */
  standBy: 500,
  /** After it, a send that has no answer shows in the status. */
  silence: 5_000,
  /** Between two looks at the topics' partition counts. */
  recheck: 60_000,
  /** How long `stop` lets a send under way go on. */
  stop: 2_000,
};

/** What only a person can put right. */
class Halted extends Error {}

/** Starts relaying from the feed checkpoint. An engine out of reach is no error: it is waited for. */
export const startRelay = (options: RelayOptions): Relay => {
  const { store, feed, checkpoint: document, logger, mayRun = () => true } = options;
  const waitsMs = { ...WAITS_MS, ...options.waitsMs };
  const place = openPlace(document);
  const stopping = new AbortController();
  let halted: string | undefined;
  let standingBy = false;
  let checkedAtMs = 0;

  const partitionsNow = async (): Promise<Partitions> => {
    const found = await feed.partitions();
    checkedAtMs = performance.now();
    return found;
  };

  const checkPartitions = (known: Partitions, found: Partitions): void => {
    for (const topic of TOPICS) {
      if (known[topic] === found[topic]) continue;
      throw new Halted(
        `the ${topic} topic has ${found[topic]} partitions and had ${known[topic]}: payments would change their partition and lose their order; give the topic its old count back, or publish under another KAFKA_TOPIC_PREFIX`,
      );
    }
  };

  const lostPlace = (): Error => {
    const why = 'another relay has moved the checkpoint of the event feed';
    return options.mayRun === undefined ? new Halted(why) : new Error(why);
  };

  const publisher = createPublisher({ store, feed, place, logger, lostPlace });

  const waitForTurn = async (): Promise<void> => {
    while (!mayRun()) {
      standingBy = true;
      await delay(waitsMs.standBy, undefined, { signal: stopping.signal });
    }
    standingBy = false;
  };

  const start = async (): Promise<Position | null> => {
    await waitForTurn();
    const found = await partitionsNow();
    const taken = await place.take(found);
    if (taken === undefined) throw lostPlace();
    checkPartitions(taken.partitions, found);
    const misfit = await misfitOf(store, taken.position, taken.hash);
    if (misfit !== undefined) {
      throw new Halted(
        `the event log ${misfit} the checkpoint of the event feed (${taken.position}): it was cut, or restored from another copy, and the topics hold events that it does not; put the right log back`,
      );
    }
    await publisher.sendParked();
    return place.taken().position;
  };

  const deliver = async (events: StoredEvent[]): Promise<void> => {
    if (!mayRun()) throw new Error('another process relays');
    if (performance.now() - checkedAtMs > waitsMs.recheck) {
      checkPartitions(place.taken().partitions, await partitionsNow());
    }
    await publisher.send(events);
  };

  /** Ends the loop where trying again cannot help. */
  const orHalt = async <T>(step: Promise<T>): Promise<T> => {
    try {
      return await step;
    } catch (error) {
      if (error instanceof Halted) {
        halted = error.message;
        logger.error({ reason: halted }, 'relay halted: it cannot go on without a person');
        void subscription.stop();
      }
      throw error;
    }
  };

  const subscription: Subscription = runSubscription({
    store,
    logger,
    ...(options.backOff === undefined ? {} : { backOff: options.backOff }),
    subscriber: {
      start: () => orHalt(start()),
      events: (events) => orHalt(deliver(events)),
      caughtUp: () => undefined,
    },
  });

  const stateNow = (): Pick<RelayStatus, 'state' | 'error'> => {
    const { state, error } = subscription.status();
    if (halted !== undefined) return { state: 'halted', error: halted };
    if (state === 'stopped') return { state };
    if (standingBy) return { state: 'standing-by' };
    if (publisher.silentForMs() > waitsMs.silence) {
      return { state: 'backing-off', error: 'the broker does not answer' };
    }
    return error === undefined ? { state } : { state, error };
  };

  const lag = createLag({ store, checkpoint: () => place.now()?.position ?? null });

  return {
    lag,
    partitions: () => place.now()?.partitions,
    status: () => ({
      ...stateNow(),
      checkpoint: place.now()?.position ?? null,
      parked: Object.keys(place.now()?.parked ?? {}).length,
      counts: { published: publisher.published(), restarts: subscription.status().restarts },
    }),
    stop: async () => {
      stopping.abort();
      const ended = subscription.stop();
      await Promise.race([ended, delay(waitsMs.stop, undefined, { ref: false })]);
      await feed.close();
      await ended;
      await document.close();
    },
  };
};
