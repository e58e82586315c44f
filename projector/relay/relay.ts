/**
 * The relay: follows the log and sends each event, and the payment's state after it, to the feed.
 * Its place is the feed checkpoint, saved after the broker has everything; whatever breaks before
 * that, the same messages are sent again, to the byte. It never touches commands or reads.
 *
 * An event that cannot be read holds back its own payment and nothing else: nothing of that payment
 * is sent past it, so no reader meets a gap, and each start tries it again.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { StoreUnavailable, UnreadableStream } from '../../shared/event-store/errors.ts';
import type {
  EventStore,
  Position,
  RecordedEvent,
  UnreadableEvent,
} from '../../shared/event-store/port.ts';
import { paymentOf, streamOf } from '../../shared/payment/payment-events.ts';
import { reasonOf } from '../../shared/runtime/error-text.ts';
import { type EventFeed, type Partitions, TOPICS } from '../event-feed/port.ts';
import { createLag, type Lag, misfitOf } from '../lag.ts';
import { type Log, runSubscription, type Subscription } from '../subscription.ts';
import { addEvent, type Batch, batchFrom, isFull } from './batch.ts';
import {
  checkpointAtStart,
  type KeyDocument,
  parseCheckpoint,
  type RelayCheckpoint,
} from './checkpoint/port.ts';
import { followPaymentStates } from './payment-states.ts';

export type RelayOptions = {
  store: Pick<EventStore, 'subscribe' | 'readStream' | 'head' | 'hashAt'>;
  feed: EventFeed;
  checkpoint: KeyDocument;
  logger: Log;
  /** Where several processes could relay: true while this one may. Left out: always. */
  mayRun?: () => boolean;
  /** Waits after an error: from `minMs`, doubled each time with jitter, up to `maxMs`. */
  backOff?: { minMs: number; maxMs: number };
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
  /** Payments held back now at an event that cannot be read. */
  held: number;
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

/** More held payments than this are no damaged events but a wrong version of the service. */
const HELD_MAX = 1_000;

type StoredEvent = RecordedEvent | UnreadableEvent;

/** What only a person can put right. */
class Halted extends Error {}

/** An event of a payment that is held back still cannot be sent. */
class StillHeld extends Error {}
const rejectOne = (error: unknown): never => {
  throw error instanceof StoreUnavailable ? error : new StillHeld(reasonOf(error));
};

/** Everything up to this event is dealt with. */
const stand = (checkpoint: RelayCheckpoint, event: StoredEvent): void => {
  checkpoint.position = event.position;
  // seeded bug: relay-log
  checkpoint.hash = 'hash' in event ? event.hash : null;
};

/** The checkpoint in the hands of one relay: every save is refused once another has saved. */
const openPlace = (document: KeyDocument) => {
  let version = 0;
  let checkpoint: RelayCheckpoint | undefined;
  const save = async (next: RelayCheckpoint): Promise<boolean> => {
    if (!(await document.save(JSON.stringify(next), version))) return false;
    version += 1;
    checkpoint = next;
    return true;
  };
  return {
    now: () => checkpoint,
    save,
    /** Reads it, or makes it, and saves it once: from here on an older relay cannot. */
    take: async (partitions: Partitions): Promise<RelayCheckpoint | undefined> => {
      const stored = await document.load();
      version = stored?.version ?? 0;
      const taken =
        stored === undefined ? checkpointAtStart(partitions) : parseCheckpoint(stored.text);
      return (await save(taken)) ? taken : undefined;
    },
  };
};

/** Starts relaying from the feed checkpoint. An engine out of reach is no error: it is waited for. */
export const startRelay = (options: RelayOptions): Relay => {
  const { store, feed, checkpoint: document, logger, mayRun = () => true } = options;
  const waitsMs = { ...WAITS_MS, ...options.waitsMs };
  const place = openPlace(document);
  const readModels = followPaymentStates(store);
  const counts = { published: 0 };
  const stopping = new AbortController();
  let halted: string | undefined;
  let standingBy = false;
  let sendingSinceMs: number | undefined;
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

  const current = (): RelayCheckpoint => {
    const checkpoint = place.now();
    if (checkpoint === undefined) throw new Error('the relay has not started');
    return checkpoint;
  };

  const lostPlace = (): Error => {
    const why = 'another relay has moved the checkpoint of the event feed';
    return options.mayRun === undefined ? new Halted(why) : new Error(why);
  };

  /** Sends a batch, then moves the checkpoint: in this order a crash repeats and never skips. */
  const flush = async ({ messages, next }: Batch): Promise<void> => {
    // seeded bug: publish-before-save
    sendingSinceMs = performance.now();
    try {
      for (const topic of TOPICS) {
        if (messages[topic].length > 0) await feed.publish(topic, messages[topic]);
      }
    } finally {
      sendingSinceMs = undefined;
    }
    if (!(await place.save(next))) throw lostPlace();
    counts.published += messages.events.length;
  };

  /**
   * Leaves an event out. Not the log alone decides that, so it is saved before anything is sent
   * that is numbered after it: sent again, everything has the number it had.
   */
  const hold = async (event: StoredEvent, paymentId: string, reason: string): Promise<void> => {
    const { next } = batchFrom(current());
    const since = new Date().toISOString();
    const known = next.held[paymentId] ?? { from: event.revision, reason, since, to: 0 };
    if (Object.keys(next.held).length >= HELD_MAX && next.held[paymentId] === undefined) {
      throw new Error(`more than ${HELD_MAX} payments have events that cannot be read: ${reason}`);
    }
    next.held[paymentId] = { ...known, to: event.revision };
    stand(next, event);
    if (!(await place.save(next))) throw lostPlace();
    logger.error({ paymentId, revision: event.revision, reason }, 'event held back from the feed');
  };

  /** Why an event cannot be sent, or undefined once it is in the batch. */
  const add = async (
    batch: Batch,
    event: StoredEvent,
    paymentId: string,
  ): Promise<string | undefined> => {
    // seeded bug: held-back
    if (batch.next.held[paymentId] !== undefined) return 'an event before it is held back';
    if ('unreadable' in event) return event.unreadable;
    try {
      await addEvent(batch, readModels, event);
      return undefined;
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      return reasonOf(error);
    }
  };

  const send = async (events: StoredEvent[]): Promise<void> => {
    let batch = batchFrom(current());
    for (const event of events) {
      const paymentId = paymentOf(event.stream);
      const refused = paymentId === undefined ? undefined : await add(batch, event, paymentId);
      if (refused === undefined) stand(batch.next, event);
      else if (batch.messages.events.length > 0) await flush(batch);
      if (refused !== undefined && paymentId !== undefined) await hold(event, paymentId, refused);
      if (isFull(batch)) await flush(batch);
      if (isFull(batch) || refused !== undefined) batch = batchFrom(current());
    }
    if (batch.next.position !== current().position) await flush(batch);
  };

  /** Sends what was held back of a payment, once all of it can be read. */
  const release = async (paymentId: string): Promise<void> => {
    const known = current().held[paymentId];
    if (known === undefined) return;
    const stream = await store.readStream(streamOf(paymentId));
    const missed = stream.filter(({ revision }) => revision >= known.from && revision <= known.to);
    let batch = batchFrom(current());
    for (const event of missed) {
      await addEvent(batch, readModels, event).catch(rejectOne);
      if (event.revision === known.to) delete batch.next.held[paymentId];
      else batch.next.held[paymentId] = { ...known, from: event.revision + 1 };
      if (isFull(batch)) {
        await flush(batch);
        batch = batchFrom(current());
      }
    }
    if (batch.messages.events.length > 0) await flush(batch);
    logger.info({ paymentId }, 'events that were held back from the feed are sent');
  };

  const releaseHeld = async (): Promise<void> => {
    for (const paymentId of Object.keys(current().held)) {
      try {
        await release(paymentId);
      } catch (error) {
        if (!(error instanceof UnreadableStream || error instanceof StillHeld)) throw error;
      }
    }
  };

  const turn = async (): Promise<void> => {
    while (!mayRun()) {
      standingBy = true;
      await delay(waitsMs.standBy, undefined, { signal: stopping.signal });
    }
    standingBy = false;
  };

  const start = async (): Promise<Position | null> => {
    await turn();
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
    await releaseHeld();
    return current().position;
  };

  const deliver = async (events: StoredEvent[]): Promise<void> => {
    if (!mayRun()) throw new Error('another process relays');
    if (performance.now() - checkedAtMs > waitsMs.recheck) {
      checkPartitions(current().partitions, await partitionsNow());
    }
    await send(events);
  };

  /** Ends the loop where trying again cannot help. */
  const orHalt = async <T>(step: Promise<T>): Promise<T> => {
    try {
      return await step;
    } catch (error) {
      if (error instanceof Halted) {
        halted = error.message;
        logger.error({ reason: halted }, 'the event feed is halted');
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

  const silentForMs = (): number =>
    sendingSinceMs === undefined ? 0 : performance.now() - sendingSinceMs;

  const stateNow = (): Pick<RelayStatus, 'state' | 'error'> => {
    const { state, error } = subscription.status();
    if (halted !== undefined) return { state: 'halted', error: halted };
    if (state === 'stopped') return { state };
    if (standingBy) return { state: 'standing-by' };
    if (silentForMs() > waitsMs.silence) {
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
      held: Object.keys(place.now()?.held ?? {}).length,
      counts: { ...counts, restarts: subscription.status().restarts },
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
