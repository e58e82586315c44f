/**
 * A client that does not read its response keeps it in memory, and Node waits for it without end. So what
 * all such responses take is bounded, of each merchant and in all, and a client that reads too slowly is
 * let go.
 */
import type { ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { PAGE_BYTES_MAX } from '../../runtime/page-bytes.ts';
import { errorBody, JSON_TYPE, RETRY_LATER, statusOf } from '../errors.ts';
import type { Lifecycle } from './shares.ts';

/** In all, of responses that are on their way. */
export const UNREAD_BYTES_MAX = 64 * 1024 * 1024;
/** Shorter responses are bounded by the places of their requests. */
const LARGE_BYTES = 16_384;
/** The same time as for a stream (streams.ts). */
const STALLED_MS = 30_000;
/** As much has to be taken in that time, on the average of the response. */
const READ_BYTES_MIN = PAGE_BYTES_MAX;

/** Whether a response is made at once, and not a stream. */
export const isOneText = (payload: unknown): payload is string | Buffer =>
  typeof payload === 'string' || Buffer.isBuffer(payload);

/** Calls back once the client has its response or has left, be it long ago. */
export const whenGone = (response: ServerResponse, gone: () => void): void => {
  if (response.destroyed) gone();
  else response.once('close', gone);
};

/** Closes the connection of a response that is not read in its time. One of `app.inject` has none. */
const letGoIfSlow = (response: ServerResponse, bytes: number, stalledMs: number): void => {
  const { socket } = response.req;
  if (!(socket instanceof Socket)) return;
  // Of a longer one something has to be taken all the time. Node sets its own time-out again behind it.
  if (bytes > READ_BYTES_MIN) socket.setTimeout(stalledMs);
  const times = Math.max(1, Math.ceil(bytes / READ_BYTES_MIN));
  const slow = setTimeout(() => socket.destroy(), stalledMs * times).unref();
  whenGone(response, () => clearTimeout(slow));
};

/** Counts a response of this length until it is out. */
const countUnread = (
  { unread }: Lifecycle,
  merchantId: string | undefined,
  response: ServerResponse,
  bytes: number,
  stalledMs: number,
): void => {
  letGoIfSlow(response, bytes, stalledMs);
  if (bytes <= LARGE_BYTES) return;
  unread.take(merchantId, bytes);
  whenGone(response, () => unread.take(merchantId, -bytes));
};

const TOO_MANY = 'too many responses are not read yet';

/** The error in the place of a response; what the route has set for its own is taken away. */
const refusal = (reply: FastifyReply): string => {
  const code = 'SERVICE_UNAVAILABLE';
  reply.removeHeader('etag').headers(RETRY_LATER).type(JSON_TYPE).code(statusOf(code));
  return errorBody(code, [TOO_MANY], new Date().toISOString());
};

/** Whether a response would be one too many. What is no reading has been carried out, and is told. */
const isTooMuch = ({ method, principal, server }: FastifyRequest, bytes: number): boolean =>
  method === 'GET' && bytes > LARGE_BYTES && server.lifecycle.unread.isFull(principal?.merchantId);

/** Bounds what unread responses take; call it before hooks that look at the payload. */
export const boundUnread = (app: FastifyInstance, stalledMs: number = STALLED_MS): void => {
  app.addHook('onSend', (request, reply, payload, done) => {
    if (!isOneText(payload)) return done();
    const sent = isTooMuch(request, payload.length) ? refusal(reply) : payload;
    const merchantId = request.principal?.merchantId;
    countUnread(app.lifecycle, merchantId, reply.raw, sent.length, stalledMs);
    done(null, sent);
  });
};
