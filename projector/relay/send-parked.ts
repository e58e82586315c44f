/**
 * Sends the left-out events of parked payments. The number of a message follows from those sent before it,
 * so messages without acknowledgement are sent again before anything else (ADR-0046). The log alone does
 * not show that a parked payment is being sent: the checkpoint names it before its first message leaves.
 */
import { UnreadableStream } from '../../shared/event-store/errors.ts';
import { streamOf } from '../../shared/payment/payment-events.ts';
import { batchFrom } from './batch.ts';
import { noteSent, noteStillParked } from './checkpoint.ts';
import { type Publisher, sendAll } from './publisher.ts';

export type Retried = { paymentId: string; sent: boolean; at?: number; reason?: string };

class StillParked extends Error {}

const SENT = 'payment no longer parked: the relay has sent the events it had left out';

/** Why it stays parked. */
const sendOne = async (own: Publisher, paymentId: string): Promise<string | undefined> => {
  const { store, checkpoint, logger } = own;
  const parking = checkpoint.value().parked[paymentId];
  if (parking === undefined) return undefined;
  try {
    const stream = await store.readStream(streamOf(paymentId));
    if (checkpoint.value().sending !== paymentId)
      await checkpoint.save({ ...checkpoint.value(), sending: paymentId });
    const leftOut = stream.slice(parking.from, parking.to + 1);
    await sendAll(own, leftOut, {
      note: (next, event) => noteSent(next, paymentId, event),
      leaveOut: async (_event, reason) => {
        throw new StillParked(reason);
      },
    });
  } catch (error) {
    if (error instanceof UnreadableStream || error instanceof StillParked) return error.message;
    throw error;
  }
  logger.info({ paymentId }, SENT);
  return undefined;
};

/**
 * One that stays parked goes behind the others. Every message of the log has to be acknowledged. Throws
 * what the engines throw; then `finishParked` comes before anything else.
 */
export const sendParked = async (own: Publisher, paymentIds: readonly string[]) => {
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
