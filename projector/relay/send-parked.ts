/**
 * Sends the left-out events of parked payments. The number of a message follows from those sent before it,
 * so messages without acknowledgement are sent again before anything else (ADR-0046). The log alone does
 * not show that a parked payment is being sent: the checkpoint names it before its first message leaves.
 */
import { isReadable } from '../../shared/event-store/codec.ts';
import { StoreUnavailable, UnreadableStream } from '../../shared/event-store/errors.ts';
import type { LogEvent, RecordedEvent } from '../../shared/event-store/port.ts';
import { streamOf } from '../../shared/payment/payment-events.ts';
import { reasonOf } from '../../shared/runtime/error-text.ts';
import { addEvent, type Batch, batchFrom, hasMessages, isFull } from './batch.ts';
import { noteSent, noteStillParked } from './checkpoint.ts';
import { type Publisher, sendInParts } from './publisher.ts';

export type Retried = { paymentId: string; sent: boolean; at?: number; reason?: string };

class StillParked extends Error {}
const throwStillParked = (error: unknown): never => {
  throw error instanceof StoreUnavailable ? error : new StillParked(reasonOf(error));
};

const batchOf = ({ checkpoint }: Publisher, paymentId: string): Batch => {
  const batch = batchFrom(checkpoint.value());
  batch.next.sending = paymentId;
  return batch;
};

const sendLeftOut = async (
  own: Publisher,
  paymentId: string,
  events: RecordedEvent[],
): Promise<void> => {
  const { checkpoint, states } = own;
  let batch = batchOf(own, paymentId);
  const again = (part: LogEvent[]) => sendLeftOut(own, paymentId, part.filter(isReadable));
  const sendBatch = async (): Promise<void> => {
    if (checkpoint.value().sending !== paymentId)
      await checkpoint.save(batchOf(own, paymentId).next);
    await sendInParts(own, batch, again, async (_event, reason) => {
      throw new StillParked(reason);
    });
    batch = batchOf(own, paymentId);
  };
  for (const event of events) {
    await addEvent(batch, states, event).catch(throwStillParked);
    batch.events.push(event);
    noteSent(batch.next, paymentId, event);
    if (isFull(batch)) await sendBatch();
  }
  if (hasMessages(batch)) await sendBatch();
};

const sendOne = async (own: Publisher, paymentId: string): Promise<string | undefined> => {
  const { store, checkpoint, logger } = own;
  const parking = checkpoint.value().parked[paymentId];
  if (parking === undefined) return undefined;
  const isMissed = ({ revision }: LogEvent) => revision >= parking.from && revision <= parking.to;
  try {
    const stream = await store.readStream(streamOf(paymentId));
    await sendLeftOut(own, paymentId, stream.filter(isMissed));
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

/**
 * One that stays parked goes behind the others. Every message of the log has to be acknowledged. Throws
 * what the engines throw; then `finishParked` comes before anything else.
 */
export const sendParked = async (
  own: Publisher,
  paymentIds: readonly string[],
): Promise<Retried[]> => {
  const { checkpoint } = own;
  const retried: Retried[] = [];
  for (const paymentId of paymentIds) {
    const reason = await sendOne(own, paymentId);
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

/** Sends again what a crash or a fault left without acknowledgement. Throws what the engines throw. */
export const finishParked = async (own: Publisher): Promise<void> => {
  const { sending } = own.checkpoint.value();
  if (sending !== undefined) await sendParked(own, [sending]);
};
