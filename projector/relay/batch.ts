/** The numbers follow from checkpoint and log alone: a batch that is sent again is the same to the byte. */
import { asPaymentEvent } from '../../shared/event-store/fold-stream.ts';
import type { PaymentStates } from '../../shared/event-store/payment-states.ts';
import type { LogEvent, RecordedEvent } from '../../shared/event-store/port.ts';
import { isSealEvent } from '../../shared/payment/events.ts';
import type { SealEvent } from '../../shared/payment/seal-events.ts';
import { eventMessage, partitionOf, sealMessage, stateMessage } from '../event-feed/messages.ts';
import { type FeedMessage, SEALS_KEY, type Topic } from '../event-feed/port.ts';
import type { RelayCheckpoint } from './checkpoint.ts';

/** Large enough that a batch costs little per event, small enough to repeat; the broker takes 1 MB at most. */
const BATCH_EVENTS_MAX = 500;
const BATCH_BYTES_MAX = 512 * 1024;

const isOfSeals = (recorded: RecordedEvent): recorded is RecordedEvent<SealEvent> =>
  isSealEvent(recorded.event);

export type Batch = {
  /** All that the checkpoint moves past, those without a message included. */
  events: LogEvent[];
  messages: Record<Topic, FeedMessage[]>;
  bytes: number;
  next: RelayCheckpoint;
};

export const batchFrom = (checkpoint: RelayCheckpoint): Batch => ({
  events: [],
  messages: { events: [], state: [], seals: [] },
  bytes: 0,
  next: { ...checkpoint, counters: [...checkpoint.counters], parked: { ...checkpoint.parked } },
});

export const isFull = ({ messages, bytes }: Batch): boolean =>
  messages.events.length >= BATCH_EVENTS_MAX || bytes >= BATCH_BYTES_MAX;

export const hasMessages = ({ messages }: Batch): boolean =>
  messages.events.length + messages.seals.length > 0;

/** Throws Error for an event of another family. */
export const sealMessageOf = (
  event: RecordedEvent,
  { seals }: RelayCheckpoint['partitions'],
): FeedMessage => {
  if (!isOfSeals(event)) throw new Error(`${event.event.type} is no seal`);
  return sealMessage(event, { partition: partitionOf(SEALS_KEY, seals) });
};

export const addSeal = (batch: Batch, event: RecordedEvent): void => {
  const seal = sealMessageOf(event, batch.next.partitions);
  batch.messages.seals.push(seal);
  batch.bytes += Buffer.byteLength(seal.value);
};

/** Throws what `after` throws. */
export const messagesOf = async (
  event: RecordedEvent,
  states: PaymentStates,
  { partitions, counters }: Pick<RelayCheckpoint, 'partitions' | 'counters'>,
): Promise<Record<'events' | 'state', FeedMessage>> => {
  const paymentEvent = asPaymentEvent(event);
  const readModel = await states.after(paymentEvent);
  const { paymentId } = readModel.response;
  const partition = partitionOf(paymentId, partitions.events);
  return {
    events: eventMessage(paymentEvent, readModel, { partition, number: counters[partition] ?? 0 }),
    state: stateMessage(paymentEvent, readModel, {
      partition: partitionOf(paymentId, partitions.state),
    }),
  };
};

export const count = (counters: number[], { partition }: FeedMessage): void => {
  counters[partition] = (counters[partition] ?? 0) + 1;
};

/** Throws what `after` throws; then the batch is unchanged. */
export const addEvent = async (
  batch: Batch,
  states: PaymentStates,
  event: RecordedEvent,
): Promise<void> => {
  const { events, state } = await messagesOf(event, states, batch.next);
  count(batch.next.counters, events);
  batch.messages.events.push(events);
  batch.messages.state.push(state);
  batch.bytes += Buffer.byteLength(events.value) + Buffer.byteLength(state.value);
};
