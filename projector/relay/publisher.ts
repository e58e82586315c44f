/**
 * Sends events in batches, and parks a payment at an event that cannot be sent. The checkpoint is saved
 * after the broker has stored everything.
 */
import { StoreUnavailable } from '../../shared/event-store/errors.ts';
import { followPaymentStates } from '../../shared/event-store/payment-states.ts';
import type { EventStore, LogEvent } from '../../shared/event-store/port.ts';
import { paymentOf } from '../../shared/payment/payment-events.ts';
import { SEALS_STREAM } from '../../shared/payment/seals-stream.ts';
import { reasonOf } from '../../shared/runtime/error-text.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { checkpointHashOf } from '../log-check.ts';
import { addEvent, addSeal, type Batch, batchFrom, hasMessages, isFull } from './batch.ts';
import { noteParked, type RelayCheckpoint } from './checkpoint.ts';
import { createParkedSender, type ParkedSender } from './send-parked.ts';
import { createSender, type Sender, type SenderOptions } from './sender.ts';

export type PublisherOptions = SenderOptions & {
  store: Pick<EventStore, 'readStream'>;
  logger: Logger;
};

export type Publisher = Pick<Sender, 'published' | 'silentForMs'> &
  ParkedSender & {
    /**
     * In their order. Throws what the engines throw, and Error while messages of a parked payment are
     * without acknowledgement.
     */
    send(events: LogEvent[]): Promise<void>;
  };

const UNFINISHED = 'messages of a parked payment are without acknowledgement';

const moveTo = (checkpoint: RelayCheckpoint, event: LogEvent): void => {
  checkpoint.position = event.position;
  checkpoint.hash = checkpointHashOf(event);
};

export const createPublisher = ({
  store,
  feed,
  checkpoint,
  logger,
  overtaken,
}: PublisherOptions): Publisher => {
  const states = followPaymentStates(store);
  const { sendInParts, published, silentForMs } = createSender({ feed, checkpoint, overtaken });

  /**
   * The log alone does not show which events are left out, so the checkpoint is saved before any later
   * message is sent: a message that is sent again has the number that it had.
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
    if (batch.next.parked[paymentId ?? ''] !== undefined) return 'an event before it is parked';
    if ('unreadable' in event) return event.unreadable;
    try {
      if (isSeal) addSeal(batch, event);
      else await addEvent(batch, states, event);
      return undefined;
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      return reasonOf(error);
    }
  };

  const send = async (events: LogEvent[]): Promise<void> => {
    if (checkpoint.value().sending !== undefined) throw new Error(UNFINISHED);
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

  return {
    send,
    ...createParkedSender({ store, checkpoint, logger, overtaken, states, sendInParts }),
    published,
    silentForMs,
  };
};
