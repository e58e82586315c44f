/** The error of the event-feed port: a driver throws this one, never an error of its client. */

/**
 * The broker is out of reach, or did not acknowledge everything: some, all or none of the messages may
 * be stored, and the same ones have to be sent again. `message` is one line for the log.
 */
export class FeedUnavailable extends Error {
  readonly code = 'FEED_UNAVAILABLE';
  override name = 'FeedUnavailable';
}

/** Everything that a call of the port may throw. */
export type EventFeedError = FeedUnavailable;
