/** The numbers follow from checkpoint and log alone: a batch that is sent again is the same to the byte. */
import { StoreUnavailable } from '../shared/event-store/errors.ts';
import { asPaymentEvent } from '../shared/event-store/fold-stream.ts';
import type { PaymentStates } from '../shared/event-store/payment-states.ts';
import type { LogEvent, RecordedEvent } from '../shared/event-store/port.ts';
import { isSealEvent, paymentOf } from '../shared/payment/events.ts';
import { SEALS_STREAM, type SealEvent } from '../shared/payment/seal-events.ts';
import { reasonOf } from '../shared/runtime/error-text.ts';
import type { RelayCheckpoint } from './checkpoint.ts';
import { eventMessage, partitionOf, sealMessage, stateMessage } from './messages.ts';
import { type FeedMessage, SEALS_KEY, TOPICS, type Topic } from './port.ts';

/** Large enough that a batch costs little per event, small enough to repeat; the broker takes 1 MB at most. */
const BATCH_EVENTS_MAX = 500;
const BATCH_BYTES_MAX = 512 * 1024;

type Made = Partial<Record<Topic, FeedMessage>>;

const isOfSeals = (recorded: RecordedEvent): recorded is RecordedEvent<SealEvent> =>
  isSealEvent(recorded.event);

/** Throws Error for an event of another family. */
export const sealMessageOf = (event: RecordedEvent, { seals }: RelayCheckpoint['partitions']) => {
  if (!isOfSeals(event)) throw new Error(`${event.event.type} is no seal`);
  return sealMessage(event, partitionOf(SEALS_KEY, seals));
};

const paymentMessagesOf = async (
  recorded: RecordedEvent,
  states: PaymentStates,
  { partitions, counters }: Pick<RelayCheckpoint, 'partitions' | 'counters'>,
): Promise<Made> => {
  const event = asPaymentEvent(recorded);
  const readModel = await states.after(event);
  const { paymentId } = readModel;
  const partition = partitionOf(paymentId, partitions.events);
  const number = counters[partition] ?? 0;
  const made = {
    events: eventMessage(event, readModel, { partition, number }),
    state: stateMessage(event, readModel, { partition: partitionOf(paymentId, partitions.state) }),
  };
  counters[partition] = number + 1;
  return made;
};

/** Counted in `counters`. A text says why an event cannot be sent. Throws StoreUnavailable. */
export const messagesOf = async (
  event: LogEvent,
  states: PaymentStates,
  place: Pick<RelayCheckpoint, 'partitions' | 'counters'>,
): Promise<Made | string> => {
  const isSeal = event.stream === SEALS_STREAM;
  if (!isSeal && paymentOf(event.stream) === undefined) return {};
  if ('unreadable' in event) return event.unreadable;
  try {
    if (isSeal) return { seals: sealMessageOf(event, place.partitions) };
    return await paymentMessagesOf(event, states, place);
  } catch (error) {
    if (error instanceof StoreUnavailable) throw error;
    return reasonOf(error);
  }
};

export type MessageBatch = {
  /** All that the checkpoint moves past, those without a message included. */
  events: LogEvent[];
  messages: Record<Topic, FeedMessage[]>;
  bytes: number;
  next: RelayCheckpoint;
};

export const batchFrom = (checkpoint: RelayCheckpoint): MessageBatch => ({
  events: [],
  messages: { events: [], state: [], seals: [] },
  bytes: 0,
  next: { ...checkpoint, counters: [...checkpoint.counters], parked: { ...checkpoint.parked } },
});

export const isFull = ({ messages, bytes }: MessageBatch): boolean =>
  messages.events.length >= BATCH_EVENTS_MAX || bytes >= BATCH_BYTES_MAX;

/** Why the event cannot be sent, or undefined once it is in the batch. Throws StoreUnavailable. */
export const addEvent = async (batch: MessageBatch, states: PaymentStates, event: LogEvent) => {
  const { next, messages } = batch;
  const paymentId = paymentOf(event.stream) ?? '';
  if (next.parked[paymentId] !== undefined && next.sending !== paymentId)
    return 'an event before it is parked';
  const made = await messagesOf(event, states, next);
  if (typeof made === 'string') return made;
  for (const topic of TOPICS) {
    const message = made[topic];
    if (message === undefined) continue;
    messages[topic].push(message);
    batch.bytes += Buffer.byteLength(message.value);
  }
  batch.events.push(event);
  return undefined;
};
