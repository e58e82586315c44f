/** Sends events in batches, and parks a payment at an event that cannot be sent. */
import { StoreUnavailable } from '../../shared/event-store/errors.ts';
import type { PaymentStates } from '../../shared/event-store/payment-states.ts';
import type { EventStore, LogEvent } from '../../shared/event-store/port.ts';
import { paymentOf } from '../../shared/payment/payment-events.ts';
import { SEALS_STREAM } from '../../shared/payment/seal-events.ts';
import { reasonOf } from '../../shared/runtime/error-text.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import { type EventFeed, MessageTooLarge } from '../event-feed/port.ts';
import { checkpointHashOf } from '../subscription.ts';
import { addEvent, addSeal, type Batch, batchFrom, hasMessages, isFull } from './batch.ts';
import { noteParked, type OwnCheckpoint, type RelayCheckpoint } from './checkpoint.ts';

/** What it sends with, and how far it is. */
export type Publisher = {
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

const UNFINISHED = 'messages of a parked payment are without acknowledgement';

export const silentForMs = ({ sendingSinceMs }: Publisher): number =>
  sendingSinceMs === undefined ? 0 : performance.now() - sendingSinceMs;

/** Saved afterwards too: a relay that has taken the checkpoint meanwhile must not be overtaken. */
export const overtake = async (own: Publisher): Promise<void> => {
  await own.feed.overtake();
  await own.checkpoint.save(own.checkpoint.value());
  own.overtookAtMs = performance.now();
};

/** In this order a crash repeats and never skips. */
const flush = async (own: Publisher, { messages, next }: Batch): Promise<void> => {
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

/** Where a batch is too large, `sendAgain` gets each half, until `tooLarge` gets the one event. */
export const sendInParts = async (
  own: Publisher,
  batch: Batch,
  sendAgain: (events: LogEvent[]) => Promise<void>,
  tooLarge: (event: LogEvent, reason: string) => Promise<void>,
): Promise<void> => {
  try {
    await flush(own, batch);
  } catch (error) {
    if (!(error instanceof MessageTooLarge)) throw error;
    await overtake(own);
    const { events } = batch;
    const [first] = events;
    if (first !== undefined && events.length === 1) return tooLarge(first, error.message);
    const middle = events.length >> 1;
    await sendAgain(events.slice(0, middle));
    await sendAgain(events.slice(middle));
  }
};

const moveTo = (checkpoint: RelayCheckpoint, event: LogEvent): void => {
  checkpoint.position = event.position;
  checkpoint.hash = checkpointHashOf(event);
};

/**
 * Saved before any later message is sent: the log alone does not show which events are left out, and a
 * message that is sent again has the number that it had.
 */
const park = async (
  { checkpoint, logger }: Publisher,
  event: LogEvent,
  reason: string,
): Promise<void> => {
  const { stream, revision } = event;
  const paymentId = paymentOf(stream);
  const { next } = batchFrom(checkpoint.value());
  if (paymentId !== undefined) noteParked(next, paymentId, event, reason);
  moveTo(next, event);
  await checkpoint.save(next);
  if (paymentId === undefined)
    logger.error({ stream, revision, reason }, 'seal left out: the relay cannot send it');
  else
    logger.error(
      { paymentId, revision, reason },
      'payment parked: the relay cannot send its event',
    );
};

/** Why an event cannot be sent, or undefined once it is in the batch. */
const add = async (
  { states }: Publisher,
  batch: Batch,
  event: LogEvent,
): Promise<string | undefined> => {
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

/** Throws what the engines throw, and Error while messages of a parked payment are unacknowledged. */
export const send = async (own: Publisher, events: LogEvent[]): Promise<void> => {
  const { checkpoint } = own;
  if (checkpoint.value().sending !== undefined) throw new Error(UNFINISHED);
  let batch = batchFrom(checkpoint.value());
  const sendAgain = (part: LogEvent[]) => send(own, part);
  const sendBatch = async (): Promise<void> => {
    await sendInParts(own, batch, sendAgain, (event, reason) => park(own, event, reason));
    batch = batchFrom(checkpoint.value());
  };
  for (const event of events) {
    const reason = await add(own, batch, event);
    if (reason !== undefined) {
      if (hasMessages(batch)) await sendBatch();
      await park(own, event, reason);
      batch = batchFrom(checkpoint.value());
      continue;
    }
    batch.events.push(event);
    moveTo(batch.next, event);
    if (isFull(batch)) await sendBatch();
  }
  if (batch.next.position !== checkpoint.value().position) await sendBatch();
};
