/**
 * Three topics for other systems. Every driver keeps these promises (test/topics/describe-event-feed.ts):
 *
 * - `publish` resolves when the broker has stored every message, in the order given within each partition, to
 *   the byte of key, headers and value.
 * - Where it is unknown whether messages were stored, `publish` throws, and the relay sends the same ones
 *   again: a message may be stored twice, is never missing, and nothing of an abandoned attempt is sent later.
 * - A feed that another has overtaken stores nothing in a partition behind its messages, and `publish` throws,
 *   so no older state stands behind a newer one.
 * - A message too large for the broker ends with MessageTooLarge, and none of its partition is stored: sent
 *   apart, the others are taken.
 * - No call takes longer than its time-out, whatever the broker does.
 * - Missing topics are made; existing topics are not changed.
 */

/** Some, all or none are stored, and have to be sent again. `message` is one line for the log. */
export class FeedUnavailable extends Error {
  override name = 'FeedUnavailable';
}

/** Of a partition with a message that is too large, none of the call is stored. `message` is one line. */
export class MessageTooLarge extends Error {
  override name = 'MessageTooLarge';
}

/** `events`: every event of every payment. `state`: the latest of each. `seals`: see ADR-0114. */
export const TOPICS = ['events', 'state', 'seals'] as const;
export type Topic = (typeof TOPICS)[number];

export type FeedMessage = {
  topic: Topic;
  partition: number;
  /** The Kafka key is the paymentId, so that a payment's messages share a partition. Of a seal: SEALS_KEY. */
  key: string;
  value: string;
  headers: Readonly<Record<string, string>>;
  timestampMs: number;
};

export type Partitions = Record<Topic, number>;

/** Of topics that this service makes; fixed from then on. */
export const PARTITIONS_DEFAULT: Partitions = { events: 6, state: 6, seals: 1 };

export const SEALS_KEY = 'log';

export type EventFeed = {
  /** Makes missing topics, and gives the counts that all have now. Throws FeedUnavailable. */
  partitions(): Promise<Partitions>;
  /** Before the first `publish`, and after each that threw. Throws FeedUnavailable. */
  overtake(): Promise<void>;
  /** Calls must not overlap. Throws FeedUnavailable and MessageTooLarge. */
  publish(topic: Topic, messages: readonly FeedMessage[]): Promise<void>;
  /** Never throws, and takes a few seconds at most. */
  close(): Promise<void>;
};

export const topicName = (prefix: string, topic: Topic): string => `${prefix}.${topic}.v1`;
