/**
 * What the relay sends at once, and the checkpoint that stands when it is sent. A message's number
 * follows from the checkpoint and the log alone, so that a batch sent again is the same bytes.
 */
import type { RecordedEvent } from '../../shared/event-store/port.ts';
import { eventMessage, stateMessage } from '../event-feed/messages.ts';
import { partitionOf } from '../event-feed/partition.ts';
import type { FeedMessage, Topic } from '../event-feed/port.ts';
import type { FeedCheckpoint } from './checkpoint/port.ts';
import type { FollowingViews } from './payment-states.ts';

/** Enough at once to be cheap, little enough to be sent again; the broker refuses above 1 MB. */
const BATCH_EVENTS_MAX = 500;
const BATCH_BYTES_MAX = 512 * 1024;

export type Batch = {
  messages: Record<Topic, FeedMessage[]>;
  bytes: number;
  /** The checkpoint once the messages are sent. */
  next: FeedCheckpoint;
};

/** An empty batch that goes on from a checkpoint, which stays as it is. */
export const batchFrom = (checkpoint: FeedCheckpoint): Batch => ({
  messages: { events: [], state: [] },
  bytes: 0,
  next: { ...checkpoint, counters: [...checkpoint.counters], held: { ...checkpoint.held } },
});

export const isFull = ({ messages, bytes }: Batch): boolean =>
  messages.events.length >= BATCH_EVENTS_MAX || bytes >= BATCH_BYTES_MAX;

/** The two messages of an event, by the partitions and numbers that a checkpoint gives them. */
export const messagesOf = async (
  event: RecordedEvent,
  views: FollowingViews,
  { partitions, counters }: Pick<FeedCheckpoint, 'partitions' | 'counters'>,
): Promise<Record<Topic, FeedMessage>> => {
  const view = await views.after(event);
  const { paymentId } = view.response;
  const partition = partitionOf(paymentId, partitions.events);
  return {
    events: eventMessage(event, view, { partition, number: counters[partition] ?? 0 }),
    state: stateMessage(event, view, { partition: partitionOf(paymentId, partitions.state) }),
  };
};

/** Counts a message of the events topic. */
export const count = (counters: number[], { partition }: FeedMessage): void => {
  counters[partition] = (counters[partition] ?? 0) + 1;
};

/** Adds an event's messages. Where it throws, the batch is as it was. */
export const addEvent = async (
  batch: Batch,
  views: FollowingViews,
  event: RecordedEvent,
): Promise<void> => {
  const { events, state } = await messagesOf(event, views, batch.next);
  count(batch.next.counters, events);
  batch.messages.events.push(events);
  batch.messages.state.push(state);
  batch.bytes += Buffer.byteLength(events.value) + Buffer.byteLength(state.value);
};
