/** The error of the event-feed port: every driver throws this one, and none of its client's. */

/**
 * The broker cannot be reached, or did not say that everything is stored: some, all or none of the
 * messages may be there. Send the very same ones again. `message` is one line for the log.
 */
export class FeedUnavailable extends Error {
  readonly code = 'FEED_UNAVAILABLE';
  override name = 'FeedUnavailable';
}

/** Everything that a call of the port may throw. */
export type EventFeedError = FeedUnavailable;
