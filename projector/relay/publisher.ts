/**
 * Sends the relay's events in batches, and parks a payment at an event that cannot be sent. The
 * checkpoint is saved after the broker has stored everything, never before.
 */

import { StoreUnavailable, UnreadableStream } from '../../shared/event-store/errors.ts';
import type { EventStore, LogEvent } from '../../shared/event-store/port.ts';
import { paymentOf, streamOf } from '../../shared/payment/payment-events.ts';
import { reasonOf } from '../../shared/runtime/error-text.ts';
import { type EventFeed, TOPICS } from '../event-feed/port.ts';
import { checkpointHashOf } from '../log-check.ts';
import type { Log } from '../subscription.ts';
import { addEvent, type Batch, batchFrom, isFull } from './batch.ts';
import type { OwnCheckpoint } from './checkpoint/own-checkpoint.ts';
import type { RelayCheckpoint } from './checkpoint/port.ts';
import { followPaymentStates } from './payment-states.ts';

/** More parked payments than this come from a wrong version of the service, not from damaged events. */
const PARKED_MAX = 1_000;

export type PublisherOptions = {
  store: Pick<EventStore, 'readStream'>;
  feed: Pick<EventFeed, 'publish'>;
  /** Already taken when the first event is sent. */
  checkpoint: OwnCheckpoint;
  logger: Log;
  /** Makes the error for a checkpoint that another relay has moved. */
  overtaken(): Error;
};

export type Publisher = {
  /** Sends events in their order and moves the checkpoint past them. Throws what the engines throw. */
  send(events: LogEvent[]): Promise<void>;
  /** Tries every parked payment again. Throws what the engines throw. */
  sendParked(): Promise<void>;
  /** Events sent and acknowledged since the start. */
  published(): number;
  /** For how many milliseconds the send under way has had no response; 0 where none is under way. */
  silentForMs(): number;
};

/** An event of a parked payment still cannot be sent. */
class StillParked extends Error {}
const throwStillParked = (error: unknown): never => {
  throw error instanceof StoreUnavailable ? error : new StillParked(reasonOf(error));
};

/** Moves a checkpoint to an event: everything up to it is sent or parked. */
const moveTo = (checkpoint: RelayCheckpoint, event: LogEvent): void => {
  checkpoint.position = event.position;
  // seeded bug: relay-log
  checkpoint.hash = checkpointHashOf(event);
};

/** The publisher of one relay. */
export const createPublisher = ({
  store,
  feed,
  checkpoint,
  logger,
  overtaken,
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
    if (!(await checkpoint.save(next))) throw overtaken();
    published += messages.events.length;
  };

  /**
   * Leaves an event out. The log alone does not show that, so the checkpoint is saved before any
   * later message is sent: a message that is sent again has the number that it had.
   */
  const park = async (event: LogEvent, paymentId: string, reason: string): Promise<void> => {
    const { next } = batchFrom(checkpoint.value());
    const since = new Date().toISOString();
    const parking = next.parked[paymentId] ?? { from: event.revision, reason, since, to: 0 };
    if (Object.keys(next.parked).length >= PARKED_MAX && next.parked[paymentId] === undefined) {
      throw new Error(
        `more than ${PARKED_MAX} payments have events that cannot be read: ${reason}`,
      );
    }
    next.parked[paymentId] = { ...parking, to: event.revision };
    moveTo(next, event);
    if (!(await checkpoint.save(next))) throw overtaken();
    logger.error(
      { paymentId, revision: event.revision, reason },
      'payment parked: the relay cannot send its event',
    );
  };

  /** Why an event cannot be sent, or undefined once it is in the batch. */
  const add = async (
    batch: Batch,
    event: LogEvent,
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

  const send = async (events: LogEvent[]): Promise<void> => {
    let batch = batchFrom(checkpoint.value());
    for (const event of events) {
      const paymentId = paymentOf(event.stream);
      const reason = paymentId === undefined ? undefined : await add(batch, event, paymentId);
      if (paymentId !== undefined && reason !== undefined) {
        if (batch.messages.events.length > 0) await flush(batch);
        await park(event, paymentId, reason);
        batch = batchFrom(checkpoint.value());
        continue;
      }
      moveTo(batch.next, event);
      if (isFull(batch)) {
        await flush(batch);
        batch = batchFrom(checkpoint.value());
      }
    }
    if (batch.next.position !== checkpoint.value().position) await flush(batch);
  };

  /** Sends the left-out events of a payment. Throws StillParked or UnreadableStream where one cannot be sent yet. */
  const sendMissed = async (paymentId: string): Promise<void> => {
    const parking = checkpoint.value().parked[paymentId];
    if (parking === undefined) return;
    const stream = await store.readStream(streamOf(paymentId));
    const missed = stream.filter(
      ({ revision }) => revision >= parking.from && revision <= parking.to,
    );
    let batch = batchFrom(checkpoint.value());
    for (const event of missed) {
      await addEvent(batch, paymentStates, event).catch(throwStillParked);
      if (event.revision === parking.to) delete batch.next.parked[paymentId];
      else batch.next.parked[paymentId] = { ...parking, from: event.revision + 1 };
      if (isFull(batch)) {
        await flush(batch);
        batch = batchFrom(checkpoint.value());
      }
    }
    if (batch.messages.events.length > 0) await flush(batch);
    logger.info(
      { paymentId },
      'payment no longer parked: the relay has sent the events it had left out',
    );
  };

  const sendParked = async (): Promise<void> => {
    for (const paymentId of Object.keys(checkpoint.value().parked)) {
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
