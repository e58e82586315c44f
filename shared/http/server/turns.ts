/** Requests that wait for their merchant's turn (gaps §27). */
import type { FastifyReply } from 'fastify';
import { RETRY_LATER, reject } from '../errors.ts';
import type {} from './app.ts';
import { type RequestTurns, whenGone } from './shares.ts';

const WAIT_MS_MAX = 5_000;
const LATE = ['the turn of this request did not come in time'];

/**
 * Takes a place until the response is over, or the result is called. Undefined, and 503, where the turn does
 * not come in time.
 */
export const takeTurn = async (
  name: keyof RequestTurns,
  reply: FastifyReply,
): Promise<(() => void) | undefined> => {
  const turns = reply.server.lifecycle.turns[name];
  const merchantId = reply.request.principal?.merchantId ?? '';
  const gone = new AbortController();
  whenGone(reply.raw, () => gone.abort());
  try {
    const late = () => AbortSignal.any([gone.signal, AbortSignal.timeout(WAIT_MS_MAX)]);
    if (!turns.take(merchantId)) await turns.wait(merchantId, late());
  } catch {
    reject(reply, 'SERVICE_UNAVAILABLE', LATE, RETRY_LATER);
    return undefined;
  }
  let hasLeft = false;
  const leave = (): void => {
    if (!hasLeft) turns.giveBack(merchantId);
    hasLeft = true;
  };
  if (gone.signal.aborted) leave();
  gone.signal.addEventListener('abort', leave);
  return leave;
};

/** Undefined, and 503, where its turn does not come in time. */
export const inTurn = async (
  name: keyof RequestTurns,
  reply: FastifyReply,
  respond: () => Promise<FastifyReply>,
): Promise<FastifyReply> => {
  const leave = await takeTurn(name, reply);
  try {
    return leave === undefined ? reply : await respond();
  } finally {
    leave?.();
  }
};
