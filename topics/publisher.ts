/** Sends events in batches, parks a payment at an event that cannot be sent, and sends its events later. */
import { UnreadableStream } from '../shared/event-store/errors.ts';
import type { PaymentStates } from '../shared/event-store/payment-states.ts';
import type { EventStore, LogEvent } from '../shared/event-store/port.ts';
import { paymentOf, streamOf } from '../shared/payment/events.ts';
import type { Logger } from '../shared/runtime/log.ts';
import { checkpointHashOf } from '../shared/subscription/subscription.ts';
import { addEvent, batchFrom, isFull, type MessageBatch } from './batch.ts';
import {
  noteParked,
  noteSent,
  noteStillParked,
  type OwnCheckpoint,
  type RelayCheckpoint,
} from './checkpoint.ts';
import type { RelayParkedRetry } from './contract.ts';
import { type EventFeed, MessageTooLarge } from './port.ts';

type Publisher = {
  store: Pick<EventStore, 'readStream'>;
  feed: Pick<EventFeed, 'overtake' | 'publish'>;
  checkpoint: OwnCheckpoint;
  logger: Logger;
  states: PaymentStates;
  /** Events and seals since the start. */
  published: number;
  overtookAtMs: number;
  /** Undefined while no send is under way. */
  sendingSinceMs: number | undefined;
};

/** The state first: where it is too large, the event uses no number. A seal after the events it covers. */
const TOPICS_IN_ORDER = ['state', 'events', 'seals'] as const;

/** Saved afterwards too: a relay that has taken the checkpoint meanwhile must not be overtaken. */
export const overtake = async (own: Publisher): Promise<void> => {
  await own.feed.overtake();
  await own.checkpoint.save(own.checkpoint.value());
  own.overtookAtMs = performance.now();
};

/** In this order a crash repeats and never skips. */
const flush = async (own: Publisher, { messages, next }: MessageBatch): Promise<void> => {
  own.sendingSinceMs = performance.now();
  try {
    for (const topic of TOPICS_IN_ORDER) {
      if (messages[topic].length > 0) await own.feed.publish(topic, messages[topic]);
    }
  } finally {
    own.sendingSinceMs = undefined;
  }
  await own.checkpoint.save(next);
  own.published += messages.events.length + messages.seals.length;
};

type Sending = {
  /** Moves the checkpoint past an event that is sent. */
  note(next: RelayCheckpoint, event: LogEvent): void;
  leaveOut(event: LogEvent, reason: string): Promise<void>;
};

/** Where a batch is too large, each half of it, until `leaveOut` gets the one event. */
const flushInParts = async (
  own: Publisher,
  batch: MessageBatch,
  sending: Sending,
): Promise<void> => {
  try {
    await flush(own, batch);
  } catch (error) {
    if (!(error instanceof MessageTooLarge)) throw error;
    await overtake(own);
    const { events } = batch;
    const [first] = events;
    if (first !== undefined && events.length === 1) return sending.leaveOut(first, error.message);
    const middle = events.length >> 1;
    await sendAll(own, events.slice(0, middle), sending);
    await sendAll(own, events.slice(middle), sending);
  }
};

const sendAll = async (own: Publisher, events: readonly LogEvent[], sending: Sending) => {
  let batch = batchFrom(own.checkpoint.value());
  const sendBatch = async (): Promise<void> => {
    if (batch.events.length > 0) await flushInParts(own, batch, sending);
    batch = batchFrom(own.checkpoint.value());
  };
  for (const event of events) {
    const reason = await addEvent(batch, own.states, event);
    if (reason === undefined) {
      sending.note(batch.next, event);
      if (isFull(batch)) await sendBatch();
      continue;
    }
    await sendBatch();
    await sending.leaveOut(event, reason);
    batch = batchFrom(own.checkpoint.value());
  }
  await sendBatch();
};

const moveTo = (checkpoint: RelayCheckpoint, event: LogEvent): void => {
  checkpoint.position = event.position;
  checkpoint.hash = checkpointHashOf(event);
};

/** Saved before a later message is sent: the log alone does not show which events are left out. */
const park = async ({ checkpoint, logger }: Publisher, event: LogEvent, reason: string) => {
  const { stream, revision } = event;
  const paymentId = paymentOf(stream);
  const { next } = batchFrom(checkpoint.value());
  if (paymentId !== undefined) noteParked(next, paymentId, event, reason);
  moveTo(next, event);
  await checkpoint.save(next);
  const [about, line] =
    paymentId === undefined
      ? [{ stream }, 'seal left out: the relay cannot send it']
      : [{ paymentId }, 'payment parked: the relay cannot send its event'];
  logger.error({ ...about, revision, reason }, line);
};

/** Throws what the engines throw, and Error while messages of a parked payment are unacknowledged. */
export const sendBatch = async (own: Publisher, events: LogEvent[]): Promise<void> => {
  if (own.checkpoint.value().sending !== undefined)
    throw new Error('messages of a parked payment are without acknowledgement');
  const leaveOut = (event: LogEvent, reason: string) => park(own, event, reason);
  await sendAll(own, events, { note: moveTo, leaveOut });
};

class StillParked extends Error {}

const SENT = 'payment no longer parked: the relay has sent the events it had left out';

/**
 * The number of a message follows from those sent before it, so messages of a parked payment without
 * acknowledgement are sent again before anything else (ADR-0046). The log alone does not show that it is being
 * sent: the checkpoint names it before its first message leaves. Returns why the payment stays parked.
 */
const sendOne = async (own: Publisher, paymentId: string): Promise<string | undefined> => {
  const { store, checkpoint, logger } = own;
  const parking = checkpoint.value().parked[paymentId];
  if (parking === undefined) return undefined;
  try {
    const stream = await store.readStream(streamOf(paymentId));
    if (checkpoint.value().sending !== paymentId)
      await checkpoint.save({ ...checkpoint.value(), sending: paymentId });
    await sendAll(own, stream.slice(parking.from, parking.to + 1), {
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

/** One that stays parked goes behind the others. Throws what the engines throw; then comes `finishParked`. */
export const sendParked = async (own: Publisher, paymentIds: readonly string[]) => {
  const { checkpoint } = own;
  const retried: RelayParkedRetry[] = [];
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
