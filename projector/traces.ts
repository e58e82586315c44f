/** Spans of a request after its response; events that are read again later have none. */
import { isReadable } from '../shared/event-store/codec.ts';
import type { LogEvent, RecordedEvent } from '../shared/event-store/port.ts';
import { createBoundedMap } from '../shared/runtime/bounded-map.ts';
import {
  type OpenSpan,
  SAME_TRACE_MS,
  sampledPlace,
  startSpan,
} from '../shared/runtime/tracing.ts';
import type { Projection } from './projection.ts';

const spanOfEvent = ({ context, event, time }: RecordedEvent): OpenSpan | undefined => {
  const parent = sampledPlace(context.traceparent);
  if (parent === undefined || Date.now() - Date.parse(time) >= SAME_TRACE_MS) return undefined;
  return startSpan({ name: `project ${event.type}`, kind: 'CONSUMER' }, parent);
};

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
