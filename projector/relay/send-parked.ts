/**
 * Sends the left-out events of parked payments. The number of a message follows from those sent before it,
 * so messages without acknowledgement are sent again before anything else (ADR-0046). The log alone does
 * not show that a parked payment is being sent: the checkpoint names it before its first message leaves.
 */
import { isReadable } from '../../shared/event-store/codec.ts';
import { StoreUnavailable, UnreadableStream } from '../../shared/event-store/errors.ts';
import type { PaymentStates } from '../../shared/event-store/payment-states.ts';
import type { EventStore, LogEvent, RecordedEvent } from '../../shared/event-store/port.ts';
import { streamOf } from '../../shared/payment/payment-events.ts';
import { reasonOf } from '../../shared/runtime/error-text.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import { addEvent, type Batch, batchFrom, hasMessages, isFull } from './batch.ts';
import { noteSent, noteStillParked, type OwnCheckpoint } from './checkpoint.ts';

/** Where a batch is too large, `sendAgain` gets each half, until `tooLarge` gets the one event. */
export type SendInParts = (
  batch: Batch,
  sendAgain: (events: LogEvent[]) => Promise<void>,
  tooLarge: (event: LogEvent, reason: string) => Promise<void>,
) => Promise<void>;

type ParkedSenderOptions = {
  store: Pick<EventStore, 'readStream'>;
  checkpoint: OwnCheckpoint;
  states: PaymentStates;
  sendInParts: SendInParts;
  logger: Logger;
};

export type Retried = { paymentId: string; sent: boolean; at?: number; reason?: string };

export type ParkedSender = {
  /** Sends again what a crash or a fault left without acknowledgement. Throws what the engines throw. */
  finishParked(): Promise<void>;
  /**
   * One that stays parked goes behind the others. Every message of the log has to be acknowledged. Throws
   * what the engines throw; then `finishParked` comes before anything else.
   */
  sendParked(paymentIds: readonly string[]): Promise<Retried[]>;
};

class StillParked extends Error {}
const throwStillParked = (error: unknown): never => {
  throw error instanceof StoreUnavailable ? error : new StillParked(reasonOf(error));
};

export const createParkedSender = (options: ParkedSenderOptions): ParkedSender => {
  const { store, checkpoint, states, sendInParts, logger } = options;

  const batchOf = (paymentId: string): Batch => {
    const batch = batchFrom(checkpoint.value());
    batch.next.sending = paymentId;
    return batch;
  };

  const sendLeftOut = async (paymentId: string, events: RecordedEvent[]): Promise<void> => {
    let batch = batchOf(paymentId);
    const sendBatch = async (): Promise<void> => {
      if (checkpoint.value().sending !== paymentId) await checkpoint.save(batchOf(paymentId).next);
      const again = (part: LogEvent[]) => sendLeftOut(paymentId, part.filter(isReadable));
      await sendInParts(batch, again, async (_event, reason) => {
        throw new StillParked(reason);
      });
      batch = batchOf(paymentId);
    };
    for (const event of events) {
      await addEvent(batch, states, event).catch(throwStillParked);
      batch.events.push(event);
      noteSent(batch.next, paymentId, event);
      if (isFull(batch)) await sendBatch();
    }
    if (hasMessages(batch)) await sendBatch();
  };

  const sendOne = async (paymentId: string): Promise<string | undefined> => {
    const parking = checkpoint.value().parked[paymentId];
    if (parking === undefined) return undefined;
    const isMissed = ({ revision }: LogEvent) => revision >= parking.from && revision <= parking.to;
    try {
      const stream = await store.readStream(streamOf(paymentId));
      await sendLeftOut(paymentId, stream.filter(isMissed));
    } catch (error) {
      if (error instanceof UnreadableStream || error instanceof StillParked) return error.message;
      throw error;
    }
    logger.info(
      { paymentId },
      'payment no longer parked: the relay has sent the events it had left out',
    );
    return undefined;
  };

  const sendParked: ParkedSender['sendParked'] = async (paymentIds) => {
    const retried: Retried[] = [];
    for (const paymentId of paymentIds) {
      const reason = await sendOne(paymentId);
      const at = checkpoint.value().parked[paymentId]?.from;
      const stopped = reason !== undefined && at !== undefined ? { at, reason } : {};
      retried.push({ paymentId, sent: reason === undefined, ...stopped });
    }
    const { next } = batchFrom(checkpoint.value());
    for (const { paymentId, reason } of retried)
      if (reason !== undefined) noteStillParked(next, paymentId, reason);
    const isNamed = next.sending !== undefined;
    delete next.sending;
    if (isNamed || retried.some(({ sent }) => !sent)) await checkpoint.save(next);
    return retried;
  };

  return {
    sendParked,
    finishParked: async () => {
      const { sending } = checkpoint.value();
      if (sending !== undefined) await sendParked([sending]);
    },
  };
};
