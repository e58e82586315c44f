/** The errors of the event-feed port: a driver throws these, never an error of its client. */

/**
 * The broker is out of reach, or did not acknowledge everything: some, all or none of the messages may
 * be stored, and the same ones have to be sent again. `message` is one line for the log.
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
