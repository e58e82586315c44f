import type { EventContext } from '../event-store/port.ts';
import { currentTraceparent } from '../runtime/tracing.ts';

/** The context of the first event of a request; it names the request's trace (ADR-0233). */
export const contextOf = ({
  actor,
  requestId,
}: Pick<EventContext, 'actor' | 'requestId'>): EventContext => {
  const context = { actor, requestId, correlationId: requestId, causationId: requestId };
  const traceparent = currentTraceparent();
  return traceparent === undefined ? context : { ...context, traceparent };
};
