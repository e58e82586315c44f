/** Spans of batches; messages that are sent again later have none. */
import { during, type SpanContext, sampledPlace, startSpan } from '../shared/runtime/tracing.ts';
import { type EventFeed, type FeedMessage, topicName } from './port.ts';

const LINKS_MAX = 128;

const placesOf = (messages: readonly FeedMessage[]): SpanContext[] => {
  const texts = new Set(messages.map(({ headers }) => headers.traceparent));
  return [...texts]
    .map(sampledPlace)
    .filter((place) => place !== undefined)
    .slice(0, LINKS_MAX);
};

/** A span for each batch: below the first of its traces, linked to the others. */
export const tracedFeed = (feed: EventFeed, prefix: string): EventFeed => ({
  ...feed,
  publish: async (topic, messages) => {
    const [parent, ...links] = placesOf(messages);
    const name = topicName(prefix, topic);
    const attributes = {
      'messaging.system': 'kafka',
      'messaging.operation.type': 'send',
      'messaging.destination.name': name,
      'messaging.batch.message_count': messages.length,
    };
    const about = { name: `send ${name}`, kind: 'PRODUCER', links, attributes } as const;
    const span = parent && startSpan(about, parent);
    return during(span, () => feed.publish(topic, messages));
  },
});
