/** Sends a batch, and saves its checkpoint once the broker has stored all of it. */
import type { LogEvent } from '../../shared/event-store/port.ts';
import { type EventFeed, MessageTooLarge } from '../event-feed/port.ts';
import type { Batch } from './batch.ts';
import type { OwnCheckpoint } from './checkpoint.ts';

/**
 * The state first: where it is too large for the broker, no number of the events topic is used for an event
 * that is then parked. A seal after the events that it covers.
 */
const TOPICS_IN_ORDER = ['state', 'events', 'seals'] as const;

export type SenderOptions = {
  feed: Pick<EventFeed, 'publish'>;
  checkpoint: OwnCheckpoint;
  /** For a checkpoint that another relay has moved. */
  overtaken(): Error;
};

export type Sender = {
  /**
   * Where the broker does not take a batch for its size, `sendAgain` gets each half, until `tooLarge` gets
   * the one event. Throws what the engines throw.
   */
  sendInParts(
    batch: Batch,
    sendAgain: (events: LogEvent[]) => Promise<void>,
    tooLarge: (event: LogEvent, reason: string) => Promise<void>,
  ): Promise<void>;
  published(): number;
  /** How long the send under way has had no response. */
  silentForMs(): number;
};

export const createSender = ({ feed, checkpoint, overtaken }: SenderOptions): Sender => {
  let published = 0;
  let sendingSinceMs: number | undefined;

  /** In this order a crash repeats and never skips. */
  const flush = async ({ messages, next }: Batch): Promise<void> => {
    sendingSinceMs = performance.now();
    try {
      for (const topic of TOPICS_IN_ORDER) {
        if (messages[topic].length > 0) await feed.publish(topic, messages[topic]);
      }
    } finally {
      sendingSinceMs = undefined;
    }
    if (!(await checkpoint.save(next))) throw overtaken();
    published += messages.events.length + messages.seals.length;
  };

  const sendInParts: Sender['sendInParts'] = async (batch, sendAgain, tooLarge) => {
    try {
      await flush(batch);
    } catch (error) {
      if (!(error instanceof MessageTooLarge)) throw error;
      const { events } = batch;
      const [first] = events;
      if (first !== undefined && events.length === 1) return tooLarge(first, error.message);
      const middle = events.length >> 1;
      await sendAgain(events.slice(0, middle));
      await sendAgain(events.slice(middle));
    }
  };

  return {
    sendInParts,
    published: () => published,
    silentForMs: () => (sendingSinceMs === undefined ? 0 : performance.now() - sendingSinceMs),
  };
};
