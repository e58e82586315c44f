import type { EventContext } from '../shared/event-store/port.ts';
import { currentTraceparent } from '../shared/runtime/tracing.ts';

/** Who sent a request, as its token says, and which request it was. */
export type Sender = { merchantId: string; actor: string; requestId: string };

/** The context that a request's intent is stored with. */
export const contextOf = ({ actor, requestId }: Sender): EventContext => {
  const context = { actor, requestId, correlationId: requestId, causationId: requestId };
  const traceparent = currentTraceparent();
  return traceparent === undefined ? context : { ...context, traceparent };
};
