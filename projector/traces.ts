/** Spans of a request after its response; events that are read again later have none. */
import { isReadable } from '../shared/event-store/codec.ts';
import type { LogEvent, RecordedEvent } from '../shared/event-store/port.ts';
import { createBoundedMap } from '../shared/runtime/bounded-map.ts';
import {
  during,
  isSampled,
  type OpenSpan,
  parseTraceparent,
  type SpanContext,
  startSpan,
} from '../shared/runtime/tracing.ts';
import { type EventFeed, type FeedMessage, topicName } from '../topics/port.ts';
import type { SendOutcome } from '../webhooks/delivery/send.ts';
import type { Projection } from './projection.ts';

/** Later a delivery is a trace of its own, linked to the event's. */
const SAME_TRACE_MS = 3_600_000;
const LINKS_MAX = 128;

const sampledPlace = (text: string | undefined): SpanContext | undefined => {
  const place = parseTraceparent(text);
  return place !== undefined && isSampled(place) ? place : undefined;
};

const spanOfEvent = ({ context, event, time }: RecordedEvent): OpenSpan | undefined => {
  const parent = sampledPlace(context.traceparent);
  if (parent === undefined || Date.now() - Date.parse(time) >= SAME_TRACE_MS) return undefined;
  return startSpan({ name: `project ${event.type}`, kind: 'CONSUMER' }, parent);
};

const isOpen = (span: OpenSpan | undefined): span is OpenSpan => span !== undefined;

const OPEN_MAX = 4_096;

/** One span for each event, however often its batch is tried. */
export const tracedProjection = (projection: Projection): Projection => {
  const open = createBoundedMap<{ span: OpenSpan; attempt: number }>(OPEN_MAX);
  const events = async (events: LogEvent[]): Promise<void> => {
    const readable = events.filter(isReadable);
    for (const event of readable) {
      const { span = spanOfEvent(event), attempt = 0 } = open.get(event.id) ?? {};
      if (span !== undefined) open.set(event.id, { span, attempt: attempt + 1 });
    }
    await projection.events(events);
    for (const { id } of readable) {
      const { span, attempt } = open.get(id) ?? {};
      span?.end({ 'payments.attempt': attempt });
      open.delete(id);
    }
  };
  return { ...projection, events };
};

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
    return during([span].filter(isOpen), () => feed.publish(topic, messages));
  },
});

type DeliveryTrace = {
  type: string;
  attempt: number;
  traceparent: string | undefined;
  ageMs: number;
};

export const tracedDelivery = async (
  { type, attempt, traceparent, ageMs }: DeliveryTrace,
  send: () => Promise<SendOutcome>,
): Promise<SendOutcome> => {
  const place = sampledPlace(traceparent);
  if (place === undefined) return send();
  const [parent, links] = ageMs < SAME_TRACE_MS ? [place, []] : [undefined, [place]];
  const attributes = { 'payments.attempt': attempt };
  const span = startSpan({ name: `deliver ${type}`, kind: 'CLIENT', links, attributes }, parent);
  return during([span].filter(isOpen), send, ({ status, error }) => ({
    'http.response.status_code': status ?? undefined,
    'error.type': /^2..$/.test(String(status)) ? undefined : (error ?? String(status)),
  }));
};
