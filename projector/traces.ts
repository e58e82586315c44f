/** Spans of a request after its response; events that are read again later have none. */
import { isReadable } from '../shared/event-store/codec.ts';
import type { LogEvent, RecordedEvent } from '../shared/event-store/port.ts';
import {
  errorTypeOf,
  type OpenSpan,
  parseTraceparent,
  startSpan,
  type TraceParent,
} from '../shared/runtime/tracing.ts';
import type { SendOutcome } from './deliverer/send.ts';
import { type EventFeed, type FeedMessage, topicName } from './event-feed/port.ts';
import type { Projection } from './projection.ts';

/** Later a delivery is a trace of its own, linked to the event's. */
const SAME_TRACE_MS = 3_600_000;
const LINKS_MAX = 128;

const sampledPlace = (text: string | undefined): TraceParent | undefined => {
  const place = parseTraceparent(text);
  return place?.isSampled === true ? place : undefined;
};

const isNew = (time: string): boolean => Date.now() - Date.parse(time) < SAME_TRACE_MS;

const spanOfEvent = ({ context, event, time }: RecordedEvent): OpenSpan | undefined => {
  const parent = sampledPlace(context.traceparent);
  if (parent === undefined || !isNew(time)) return undefined;
  return startSpan({ name: `project ${event.type}`, kind: 'consumer', parent, attributes: {} });
};

const isOpen = (span: OpenSpan | undefined): span is OpenSpan => span !== undefined;

const around = async <T>(spans: readonly OpenSpan[], work: () => Promise<T>): Promise<T> => {
  try {
    const result = await work();
    for (const span of spans) span.end();
    return result;
  } catch (error) {
    for (const span of spans) span.end({ 'error.type': errorTypeOf(error) });
    throw error;
  }
};

export const tracedProjection = (projection: Projection): Projection => ({
  ...projection,
  events: (events: LogEvent[]) => {
    const spans = events.filter(isReadable).map(spanOfEvent).filter(isOpen);
    return around(spans, () => projection.events(events));
  },
});

const placesOf = (messages: readonly FeedMessage[]): TraceParent[] => {
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
    const span =
      parent &&
      startSpan({
        name: `send ${name}`,
        kind: 'producer',
        parent,
        links,
        attributes: {
          'messaging.system': 'kafka',
          'messaging.operation.type': 'send',
          'messaging.destination.name': name,
          'messaging.batch.message_count': messages.length,
        },
      });
    return around([span].filter(isOpen), () => feed.publish(topic, messages));
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
  const isSame = ageMs < SAME_TRACE_MS;
  const span =
    place &&
    startSpan({
      name: `deliver ${type}`,
      kind: 'client',
      parent: isSame ? place : undefined,
      links: isSame ? [] : [place],
      attributes: { 'payments.attempt': attempt },
    });
  if (span === undefined) return send();
  const outcome = await send().catch((error: unknown) => {
    span.end({ 'error.type': errorTypeOf(error) });
    throw error;
  });
  const { status, error } = outcome;
  const isTaken = status !== null && status >= 200 && status < 300;
  span.end({
    'http.response.status_code': status ?? undefined,
    'error.type': isTaken ? undefined : (error ?? String(status)),
  });
  return outcome;
};
