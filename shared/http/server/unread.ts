/** Unread responses stay in memory without end: they are bounded, and slow clients disconnected. */
import type { ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { PAGE_BYTES_MAX } from '../../runtime/page-bytes.ts';
import { errorBody, JSON_TYPE, RETRY_LATER, statusOf } from '../errors.ts';
import type { Lifecycle } from './shares.ts';

export const UNREAD_BYTES_MAX = 64 * 1024 * 1024;
/** Shorter responses are bounded by the places of their requests. */
const LARGE_BYTES = 16_384;
const STALLED_MS = 30_000;
/** A client has to read so much in STALLED_MS, on average. */
const READ_BYTES_MIN = PAGE_BYTES_MAX;

export const isOneText = (payload: unknown): payload is string | Buffer =>
  typeof payload === 'string' || Buffer.isBuffer(payload);

/** Also where the client left long ago. */
export const whenGone = (response: ServerResponse, gone: () => void): void => {
  if (response.destroyed) gone();
  else response.once('close', gone);
};

/** Closes the connection of a response that is not read in time; with `app.inject` there is none. */
const letGoIfSlow = (response: ServerResponse, bytes: number, stalledMs: number): void => {
  const { socket } = response.req;
  if (!(socket instanceof Socket)) return;
  // Of a longer one some bytes have to be read all the time. Node restores its own time-out afterwards.
  if (bytes > READ_BYTES_MIN) socket.setTimeout(stalledMs);
  const times = Math.max(1, Math.ceil(bytes / READ_BYTES_MIN));
  const slow = setTimeout(() => socket.destroy(), stalledMs * times).unref();
  whenGone(response, () => clearTimeout(slow));
};

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

const refusal = (reply: FastifyReply): string => {
  const code = 'SERVICE_UNAVAILABLE';
  reply.removeHeader('etag').headers(RETRY_LATER).type(JSON_TYPE).code(statusOf(code));
  return errorBody(code, [TOO_MANY], new Date().toISOString());
};

/** Only a GET is refused: any other request has been carried out, and its response says so. */
const isTooMuch = ({ method, principal, server }: FastifyRequest, bytes: number): boolean =>
  method === 'GET' && bytes > LARGE_BYTES && server.lifecycle.unread.isFull(principal?.merchantId);

/** Call it before hooks that look at the payload. */
export const boundUnread = (app: FastifyInstance, stalledMs: number = STALLED_MS): void => {
  app.addHook('onSend', (request, reply, payload, done) => {
    if (!isOneText(payload)) return done();
    const sent = isTooMuch(request, payload.length) ? refusal(reply) : payload;
    const merchantId = request.principal?.merchantId;
    countUnread(app.lifecycle, merchantId, reply.raw, sent.length, stalledMs);
    done(null, sent);
  });
};
