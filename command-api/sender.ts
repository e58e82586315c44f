/** Who sent a request to the command side. */
import type { FastifyReply } from 'fastify';
import type { Principal } from '../shared/http/auth/principal.ts';

/** Who sent a request, as its token says, and which request it was. */
export type Sender = { merchantId: string; actor: string; requestId: string };

/** The sender of the request that a reply is for. */
export const senderOf = (
  { merchantId, actor }: Principal,
  { request }: Pick<FastifyReply, 'request'>,
): Sender => ({ merchantId, actor, requestId: request.id });
