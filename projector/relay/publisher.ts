/**
 * What the relay does with events: batches of them are sent, and those that cannot be sent park
 * their payment. The checkpoint is saved after the broker has everything, never before.
 */

import { StoreUnavailable, UnreadableStream } from '../../shared/event-store/errors.ts';
import type { EventStore, RecordedEvent, UnreadableEvent } from '../../shared/event-store/port.ts';
import { paymentOf, streamOf } from '../../shared/payment/payment-events.ts';
import { reasonOf } from '../../shared/runtime/error-text.ts';
import { type EventFeed, TOPICS } from '../event-feed/port.ts';
import type { Log } from '../subscription.ts';
import { addEvent, type Batch, batchFrom, isFull } from './batch.ts';
import type { Place } from './checkpoint/place.ts';
import type { RelayCheckpoint } from './checkpoint/port.ts';
import { followPaymentStates } from './payment-states.ts';

/** More parked payments than this are no damaged events but a wrong version of the service. */
const PARKED_MAX = 1_000;

export type StoredEvent = RecordedEvent | UnreadableEvent;

export type PublisherOptions = {
  store: Pick<EventStore, 'readStream'>;
  feed: Pick<EventFeed, 'publish'>;
  place: Place;
  logger: Log;
  /** The error for a checkpoint that another relay has moved. */
  lostPlace(): Error;
};

export type Publisher = {
  /** Sends events in their order and moves the checkpoint past them. Throws what the engines throw. */
  send(events: StoredEvent[]): Promise<void>;
  /** Tries every parked payment again. */
  sendParked(): Promise<void>;
  /** Events sent and acknowledged since the start. */
  published(): number;
  /** How long the send under way has had no answer, 0 where none is. */
  silentForMs(): number;
};

/** An event of a parked payment still cannot be sent. */
class StillParked extends Error {}
const rejectOne = (error: unknown): never => {
  throw error instanceof StoreUnavailable ? error : new StillParked(reasonOf(error));
};

/** Everything up to this event is dealt with. */
const stand = (checkpoint: RelayCheckpoint, event: StoredEvent): void => {
  checkpoint.position = event.position;
  // seeded bug: relay-log
  checkpoint.hash = 'hash' in event ? event.hash : null;
};

/** The publisher of one relay, whose place has been taken before anything is sent. */
export const createPublisher = ({
  store,
  feed,
  place,
  logger,
  lostPlace,
}: PublisherOptions): Publisher => {
  const paymentStates = followPaymentStates(store);
  let published = 0;
  let sendingSinceMs: number | undefined;

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
    published += messages.events.length;
  };

  /**
   * Leaves an event out. Not the log alone decides that, so it is saved before anything is sent
   * that is numbered after it: sent again, everything has the number it had.
   */
  const park = async (event: StoredEvent, paymentId: string, reason: string): Promise<void> => {
    const { next } = batchFrom(place.taken());
    const since = new Date().toISOString();
    const known = next.parked[paymentId] ?? { from: event.revision, reason, since, to: 0 };
    if (Object.keys(next.parked).length >= PARKED_MAX && next.parked[paymentId] === undefined) {
      throw new Error(
        `more than ${PARKED_MAX} payments have events that cannot be read: ${reason}`,
      );
    }
    next.parked[paymentId] = { ...known, to: event.revision };
    stand(next, event);
    if (!(await place.save(next))) throw lostPlace();
    logger.error(
      { paymentId, revision: event.revision, reason },
      'payment parked: the relay cannot send its event',
    );
  };

  /** Why an event cannot be sent, or undefined once it is in the batch. */
  const add = async (
    batch: Batch,
    event: StoredEvent,
    paymentId: string,
  ): Promise<string | undefined> => {
    // seeded bug: held-back
    if (batch.next.parked[paymentId] !== undefined) return 'an event before it is parked';
    if ('unreadable' in event) return event.unreadable;
    try {
      await addEvent(batch, paymentStates, event);
      return undefined;
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      return reasonOf(error);
    }
  };

  const send = async (events: StoredEvent[]): Promise<void> => {
    let batch = batchFrom(place.taken());
    for (const event of events) {
      const paymentId = paymentOf(event.stream);
      const reason = paymentId === undefined ? undefined : await add(batch, event, paymentId);
      if (reason === undefined) stand(batch.next, event);
      else if (batch.messages.events.length > 0) await flush(batch);
      if (reason !== undefined && paymentId !== undefined) await park(event, paymentId, reason);
      if (isFull(batch)) await flush(batch);
      if (isFull(batch) || reason !== undefined) batch = batchFrom(place.taken());
    }
    if (batch.next.position !== place.taken().position) await flush(batch);
  };

  /** Sends what was left out of a payment, once all of it can be read. */
  const sendMissed = async (paymentId: string): Promise<void> => {
    const known = place.taken().parked[paymentId];
    if (known === undefined) return;
    const stream = await store.readStream(streamOf(paymentId));
    const missed = stream.filter(({ revision }) => revision >= known.from && revision <= known.to);
    let batch = batchFrom(place.taken());
    for (const event of missed) {
      await addEvent(batch, paymentStates, event).catch(rejectOne);
      if (event.revision === known.to) delete batch.next.parked[paymentId];
      else batch.next.parked[paymentId] = { ...known, from: event.revision + 1 };
      if (isFull(batch)) {
        await flush(batch);
        batch = batchFrom(place.taken());
      }
    }
    if (batch.messages.events.length > 0) await flush(batch);
    logger.info(
      { paymentId },
      'payment no longer parked: the relay has sent the events it had left out',
    );
  };

  const sendParked = async (): Promise<void> => {
    for (const paymentId of Object.keys(place.taken().parked)) {
      try {
        await sendMissed(paymentId);
      } catch (error) {
        if (!(error instanceof UnreadableStream || error instanceof StillParked)) throw error;
      }
    }
  };

  return {
    send,
    sendParked,
    published: () => published,
    silentForMs: () => (sendingSinceMs === undefined ? 0 : performance.now() - sendingSinceMs),
  };
};
