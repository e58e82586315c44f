/**
 * The event feed: two topics that other systems read. Every driver keeps these promises;
 * test/contract/event-feed asks each of them:
 *
 * - `publish` resolves when every message is stored by the broker, in the order given within each
 *   partition, with key, headers and value to the byte.
 * - Where it is not known whether messages were stored, it throws, and the caller sends the very
 *   same ones again: a message may be there twice, never missing, and nothing of an attempt that
 *   was given up is sent later.
 * - No call takes longer than its bound, whatever the broker does.
 * - Topics are made where they are missing and otherwise left as they are.
 */

/** `events`: every event of every payment. `state`: the latest state of each, compacted. */
export const TOPICS = ['events', 'state'] as const;
export type Topic = (typeof TOPICS)[number];

/** The number of partitions of a topic that this service makes; fixed from then on. */
export const PARTITIONS_DEFAULT = 6;

export type FeedMessage = {
  topic: Topic;
  partition: number;
  /** The paymentId: all messages of one payment share a partition. */
  key: string;
  /** The CloudEvent as JSON text. */
  value: string;
  headers: Readonly<Record<string, string>>;
  /** The time of the event, in milliseconds since 1970. */
  timestampMs: number;
};

export type Partitions = Record<Topic, number>;

export type EventFeed = {
  /**
   * Connects, makes the topics where they are missing, and tells how many partitions each has.
   * Asked again it looks again. Throws FeedUnavailable.
   */
  partitions(): Promise<Partitions>;
  /**
   * Sends messages of one topic; one call at a time. Throws FeedUnavailable: some, all or none are
   * stored, send the very same ones again.
   */
  publish(topic: Topic, messages: readonly FeedMessage[]): Promise<void>;
  /** Never throws and takes a few seconds at most. */
  close(): Promise<void>;
};

/** The name of a topic at the broker: `payments.events.v1`. */
export const topicName = (prefix: string, topic: Topic): string => `${prefix}.${topic}.v1`;
