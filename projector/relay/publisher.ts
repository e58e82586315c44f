/**
 * Sends the relay's events in batches, and parks a payment at an event that cannot be sent. The
 * checkpoint is saved after the broker has stored everything, never before.
 */
import { isReadable } from '../../shared/event-store/codec.ts';
import { StoreUnavailable, UnreadableStream } from '../../shared/event-store/errors.ts';
import { followPaymentStates } from '../../shared/event-store/payment-states.ts';
import type { EventStore, LogEvent, RecordedEvent } from '../../shared/event-store/port.ts';
import { paymentOf, streamOf } from '../../shared/payment/payment-events.ts';
import { SEALS_STREAM } from '../../shared/payment/seal-events.ts';
import { reasonOf } from '../../shared/runtime/error-text.ts';
import { checkpointHashOf } from '../log-check.ts';
import type { Log } from '../subscription.ts';
import { addEvent, addSeal, type Batch, batchFrom, hasMessages, isFull } from './batch.ts';
import type { RelayCheckpoint } from './checkpoint/port.ts';
import { noteParked, noteSent } from './parked-payments.ts';
import { createSender, type Sender, type SenderOptions } from './sender.ts';

export type PublisherOptions = SenderOptions & {
  store: Pick<EventStore, 'readStream'>;
  logger: Log;
};

export type Publisher = Pick<Sender, 'published' | 'silentForMs'> & {
  /** Sends events in their order and moves the checkpoint past them. Throws what the engines throw. */
  send(events: LogEvent[]): Promise<void>;
  /** Tries every parked payment again. Throws what the engines throw. */
  sendParked(): Promise<void>;
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
  const { sendInParts, published, silentForMs } = createSender({ feed, checkpoint, overtaken });

  /**
   * Leaves an event out. The log alone does not show that, so the checkpoint is saved before any
   * later message is sent: a message that is sent again has the number that it had.
   */
  const park = async (event: LogEvent, reason: string): Promise<void> => {
    const { stream, revision } = event;
    const paymentId = paymentOf(stream);
    const { next } = batchFrom(checkpoint.value());
    if (paymentId !== undefined) noteParked(next, paymentId, event, reason);
    moveTo(next, event);
    if (!(await checkpoint.save(next))) throw overtaken();
    if (paymentId === undefined) {
      logger.error({ stream, revision, reason }, 'seal left out: the relay cannot send it');
    } else {
      logger.error(
        { paymentId, revision, reason },
        'payment parked: the relay cannot send its event',
      );
    }
  };

  /** Why an event cannot be sent, or undefined once it is in the batch. */
  const add = async (batch: Batch, event: LogEvent): Promise<string | undefined> => {
    const paymentId = paymentOf(event.stream);
    const isSeal = event.stream === SEALS_STREAM;
    if (paymentId === undefined && !isSeal) return undefined;
    // seeded bug: held-back
    if (batch.next.parked[paymentId ?? ''] !== undefined) return 'an event before it is parked';
    if ('unreadable' in event) return event.unreadable;
    try {
      if (isSeal) addSeal(batch, event);
      else await addEvent(batch, paymentStates, event);
      return undefined;
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      return reasonOf(error);
    }
  };

  const send = async (events: LogEvent[]): Promise<void> => {
    let batch = batchFrom(checkpoint.value());
    const sendBatch = async (): Promise<void> => {
      await sendInParts(batch, send, park);
      batch = batchFrom(checkpoint.value());
    };
    for (const event of events) {
      const reason = await add(batch, event);
      if (reason !== undefined) {
        if (hasMessages(batch)) await sendBatch();
        await park(event, reason);
        batch = batchFrom(checkpoint.value());
        continue;
      }
      batch.events.push(event);
      moveTo(batch.next, event);
      if (isFull(batch)) await sendBatch();
    }
    if (batch.next.position !== checkpoint.value().position) await sendBatch();
  };

  /** Sends left-out events of a payment, in their order. Throws StillParked where one cannot be sent yet. */
  const sendLeftOut = async (paymentId: string, events: RecordedEvent[]): Promise<void> => {
    let batch = batchFrom(checkpoint.value());
    const sendBatch = async (): Promise<void> => {
      const again = (part: LogEvent[]) => sendLeftOut(paymentId, part.filter(isReadable));
      await sendInParts(batch, again, async (_event, reason) => throwStillParked(reason));
      batch = batchFrom(checkpoint.value());
    };
    for (const event of events) {
      await addEvent(batch, paymentStates, event).catch(throwStillParked);
      batch.events.push(event);
      noteSent(batch.next, paymentId, event);
      if (isFull(batch)) await sendBatch();
    }
    if (batch.messages.events.length > 0) await sendBatch();
  };

  /** Sends the left-out events of a payment. Throws StillParked or UnreadableStream where one cannot be sent yet. */
  const sendMissed = async (paymentId: string): Promise<void> => {
    const parking = checkpoint.value().parked[paymentId];
    if (parking === undefined) return;
    const stream = await store.readStream(streamOf(paymentId));
    const isMissed = ({ revision }: LogEvent) => revision >= parking.from && revision <= parking.to;
    await sendLeftOut(paymentId, stream.filter(isMissed));
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
    published,
    silentForMs,
  };
};
