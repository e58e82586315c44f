/** The event-feed port in memory, with its promises kept and a broker's faults at hand. */
import type { KeyDocument } from '../../shared/read-models/key-document.ts';
import {
  type EventFeed,
  type FeedMessage,
  FeedUnavailable,
  MessageTooLarge,
  PARTITIONS_DEFAULT,
  type Partitions,
  type Topic,
} from '../../topics/port.ts';

export type MemoryFeed = EventFeed & {
  /** Another client of the same broker. */
  client(): EventFeed;
  /** Everything the broker has stored, in the order it came, with what it has twice. */
  stored(topic: Topic): FeedMessage[];
  /** Nothing can be reached from now on, or again. */
  down(on: boolean): void;
  /** The next sends store only so many of their messages, and then the sender does not know; undefined: all is well. */
  loseResponses(...storedOfEach: (number | undefined)[]): void;
  /** Sends store nothing and do not end, until `close` or called with false. */
  freeze(on: boolean): void;
  repartition(partitions: Partial<Partitions>): void;
  /** From now on it takes no more bytes than this for one partition at once; undefined: any. */
  takeAtMost(bytes: number | undefined): void;
};

/** The partitions of some messages whose values are more bytes together than a broker takes. */
const tooLarge = (messages: readonly FeedMessage[], bytesMax: number): Set<number> => {
  const bytes = new Map<number, number>();
  for (const { partition, value } of messages)
    bytes.set(partition, (bytes.get(partition) ?? 0) + Buffer.byteLength(value));
  return new Set([...bytes].filter(([, sum]) => sum > bytesMax).map(([partition]) => partition));
};

/** Closing it ends what is under way; it can be used again, as a broker by its next client. */
export const memoryFeed = (): MemoryFeed => {
  const stored: Record<Topic, FeedMessage[]> = { events: [], state: [], seals: [] };
  const losing: (number | undefined)[] = [];
  let partitions = PARTITIONS_DEFAULT;
  let isDown = false;
  let bytesMax = Number.POSITIVE_INFINITY;
  let frozen: PromiseWithResolvers<void> | undefined;
  let lastEpoch = 0;
  /** The epoch of the last message in each partition of each topic. */
  const epochs = new Map<string, number>();

  const reach = (): void => {
    if (isDown) throw new FeedUnavailable('the broker is down');
  };
  const client = (): EventFeed => {
    let epoch = 0;
    return {
      partitions: async () => {
        reach();
        return partitions;
      },
      overtake: async () => {
        reach();
        lastEpoch += 1;
        epoch = lastEpoch;
      },
      publish: async (topic, messages) => {
        reach();
        if (frozen !== undefined) {
          await frozen.promise;
          throw new FeedUnavailable('the broker did not answer');
        }
        const places = new Set(messages.map(({ partition }) => `${topic}/${partition}`));
        if ([...places].some((place) => (epochs.get(place) ?? 0) > epoch))
          throw new FeedUnavailable('another feed has overtaken this one');
        for (const place of places) epochs.set(place, epoch);
        const refused = tooLarge(messages, bytesMax);
        const kept = losing.shift();
        const taken = messages.filter(({ partition }) => !refused.has(partition));
        stored[topic].push(...taken.slice(0, kept));
        if (refused.size > 0) throw new MessageTooLarge('the broker takes no message of that size');
        if (kept !== undefined) throw new FeedUnavailable('the answer was lost');
      },
      close: async () => frozen?.resolve(),
    };
  };
  return {
    ...client(),
    client,
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
      partitions = { ...PARTITIONS_DEFAULT, ...changed };
    },
    takeAtMost: (bytes = Number.POSITIVE_INFINITY) => {
      bytesMax = bytes;
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
