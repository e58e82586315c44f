/** The event-feed port in memory, with its promises kept and a broker's faults at hand. */
import { FeedUnavailable } from '../../projector/event-feed/errors.ts';
import {
  type EventFeed,
  type FeedMessage,
  PARTITIONS_DEFAULT,
  type Partitions,
  type Topic,
} from '../../projector/event-feed/port.ts';
import type { KeyDocument } from '../../projector/relay/checkpoint/port.ts';

export type MemoryFeed = EventFeed & {
  /** Everything the broker has stored, in the order it came, with what it has twice. */
  stored(topic: Topic): FeedMessage[];
  /** Nothing can be reached from now on, or again. */
  down(on: boolean): void;
  /** The next sends store only so many of their messages, and then nobody knows. */
  loseResponses(...storedOfEach: number[]): void;
  /** Sends store nothing and do not end, until `close` or called with false. */
  freeze(on: boolean): void;
  repartition(partitions: Partitions): void;
};

/** Closing it ends what is under way; it can be used again, as a broker by its next client. */
export const memoryFeed = (): MemoryFeed => {
  const stored: Record<Topic, FeedMessage[]> = { events: [], state: [] };
  const losing: number[] = [];
  let partitions: Partitions = { events: PARTITIONS_DEFAULT, state: PARTITIONS_DEFAULT };
  let isDown = false;
  let frozen: PromiseWithResolvers<void> | undefined;

  const reach = (): void => {
    if (isDown) throw new FeedUnavailable('the broker is down');
  };
  return {
    partitions: async () => {
      reach();
      return partitions;
    },
    publish: async (topic, messages) => {
      reach();
      if (frozen !== undefined) {
        await frozen.promise;
        throw new FeedUnavailable('the broker did not answer');
      }
      const kept = losing.shift();
      stored[topic].push(...messages.slice(0, kept));
      if (kept !== undefined) throw new FeedUnavailable('the answer was lost');
    },
    close: async () => frozen?.resolve(),
    stored: (topic) => stored[topic],
    down: (on) => {
      isDown = on;
    },
    loseResponses: (...storedOfEach) => void losing.push(...storedOfEach),
    freeze: (on) => {
      if (on) frozen ??= Promise.withResolvers();
      else {
        frozen?.resolve();
        frozen = undefined;
      }
    },
    repartition: (changed) => {
      partitions = changed;
    },
  };
};

/** A document in memory that keeps its promises over any number of users. */
export const memoryDocument = (): KeyDocument & { failSaves(count: number): void } => {
  let stored: { version: number; text: string } | undefined;
  let failing = 0;
  return {
    load: async () => stored,
    save: async (text, expectedVersion) => {
      if (failing > 0) {
        failing -= 1;
        throw new Error('the checkpoint cannot be saved');
      }
      if ((stored?.version ?? 0) !== expectedVersion) return false;
      stored = { version: expectedVersion + 1, text };
      return true;
    },
    close: async () => undefined,
    failSaves: (count) => {
      failing = count;
    },
  };
};
