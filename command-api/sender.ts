/** Who sent a request to the command side, and what an event says of it. */
import type { FastifyReply } from 'fastify';
import type { EventContext } from '../shared/event-store/port.ts';
import type { Principal } from '../shared/http/auth/principal.ts';
import { currentTraceparent } from '../shared/runtime/tracing.ts';

/** Who sent a request, as its token says, and which request it was. */
export type Sender = { merchantId: string; actor: string; requestId: string };

/** The sender of the request that a reply is for. */
export const senderOf = (
  { merchantId, actor }: Principal,
  { request }: Pick<FastifyReply, 'request'>,
): Sender => ({ merchantId, actor, requestId: request.id });

/** The context that a request's intent is stored with. */
export const contextOf = ({ actor, requestId }: Sender): EventContext => {
  const context = { actor, requestId, correlationId: requestId, causationId: requestId };
  const traceparent = currentTraceparent();
  return traceparent === undefined ? context : { ...context, traceparent };
};
