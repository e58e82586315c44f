/**
 * The event feed: three topics that other systems read. Every driver keeps these promises, which
 * test/contract/event-feed checks:
 *
 * - `publish` resolves when every message is stored by the broker, in the order given within each
 *   partition, with key, headers and value to the byte.
 * - Where it is not known whether messages were stored, `publish` throws, and the relay sends the same
 *   ones again: a message may be stored twice, is never missing, and nothing of an attempt that was
 *   given up is sent later.
 * - Messages that the broker does not take for their size end with MessageTooLarge, and none of their
 *   partition is stored: sent apart, the others are taken.
 * - No call takes longer than its time-out, whatever the broker does.
 * - Missing topics are made; existing topics are not changed.
 */

/**
 * The broker is out of reach, or did not acknowledge everything: some, all or none of the messages may be
 * stored, and the same ones have to be sent again. `message` is one line for the log.
 */
export class FeedUnavailable extends Error {
  readonly code = 'FEED_UNAVAILABLE';
  override name = 'FeedUnavailable';
}

/**
 * The broker does not take one of the messages, or all of them together, for their size; the same ones
 * again meet the same error. Of a partition whose messages it refused, none of this call is stored.
 * `message` is one line for the log.
 */
export class MessageTooLarge extends Error {
  readonly code = 'MESSAGE_TOO_LARGE';
  override name = 'MessageTooLarge';
}

/**
 * `events`: every event of every payment. `state`: the latest state of each, compacted. `seals`: the seals
 * of the log (ADR-0114), to compare the log with later.
 */
export const TOPICS = ['events', 'state', 'seals'] as const;
export type Topic = (typeof TOPICS)[number];

export type FeedMessage = {
  topic: Topic;
  partition: number;
  /** The paymentId: all messages of one payment share a partition. Of a seal: SEALS_KEY. */
  key: string;
  /** A CloudEvent as JSON text. */
  value: string;
  headers: Readonly<Record<string, string>>;
  /** The time of the event, in milliseconds since 1970. */
  timestampMs: number;
};

export type Partitions = Record<Topic, number>;

/** The number of partitions of each topic that this service makes; fixed from then on. */
export const PARTITIONS_DEFAULT: Partitions = { events: 6, state: 6, seals: 1 };

/** One key for the whole topic: one log, in one order. */
export const SEALS_KEY = 'log';

export type EventFeed = {
  /**
   * Connects, makes missing topics, and gives the number of partitions that each has now. Throws
   * FeedUnavailable.
   */
  partitions(): Promise<Partitions>;
  /**
   * Sends messages of one topic; calls must not overlap. Throws FeedUnavailable: then some, all or
   * none are stored, and the same ones have to be sent again. Throws MessageTooLarge.
   */
  publish(topic: Topic, messages: readonly FeedMessage[]): Promise<void>;
  /** Ends the connection. Never throws, and takes a few seconds at most. */
  close(): Promise<void>;
};

/** The name of a topic at the broker: `payments.events.v1`. */
export const topicName = (prefix: string, topic: Topic): string => `${prefix}.${topic}.v1`;
