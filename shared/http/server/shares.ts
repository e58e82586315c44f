/**
 * What requests share, partly in turn (gaps §27). A request has one place of MAX_IN_FLIGHT from its last check
 * before the body until its response is out; a merchant takes at most half. Unread responses would stay in
 * memory without end: they are bounded as well, and slow clients disconnected.
 */
import type { ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { FastifyInstance, FastifyReply, onRequestHookHandler } from 'fastify';
import { PAGE_BYTES_MAX } from '../../read-models/pages.ts';
import { createTurns } from '../../runtime/fair-turns.ts';
import { errorBody, JSON_TYPE, RETRY_LATER, reject, UNAVAILABLE } from '../errors.ts';

/** One part in so many. */
const OF_A_MERCHANT = 2;
/** Requests without a token together: anyone can send those, a merchant included (gaps §11). */
const OF_UNAUTHENTICATED = 4;
const UNAUTHENTICATED = '';
const merchantOf = ({ request }: FastifyReply) => request.principal?.merchantId ?? UNAUTHENTICATED;

const oneEach = (places: number) => createTurns(places, 1);

/** What requests wait for in turn; a merchant has one of each at a time (docs/invariants.md). */
export const createRequestTurns = () => ({
  past: oneEach(8),
  verifications: oneEach(4),
  searches: oneEach(8),
  endpoints: oneEach(8),
  attention: oneEach(8),
});
type RequestTurns = ReturnType<typeof createRequestTurns>;

export type Lifecycle = {
  readonly places: Shares;
  readonly unread: Shares;
  readonly turns: RequestTurns;
  /** For so long a request waits for its turn; tests shorten it. */
  turnMs: number;
  /** Not ready, and each response is the last of its connection. */
  closing: boolean;
  /** New requests are 503. */
  refusing: boolean;
};

/** A merchant may take `ofOneMin` in any case, so that a small `max` is not halved. */
export const createShares = (max: number, ofOneMin = 1) => {
  const turns = createTurns(max, Math.max(Math.ceil(max / OF_A_MERCHANT), ofOneMin));
  const unauthenticatedMax = Math.ceil(max / OF_UNAUTHENTICATED);
  return {
    /** `merchantId` is undefined for a request without a token. */
    isFull: (merchantId = UNAUTHENTICATED): boolean =>
      !turns.fits(merchantId) ||
      (merchantId === UNAUTHENTICATED && turns.takenBy(merchantId) >= unauthenticatedMax),
    /** A negative amount gives it back. */
    take: (merchantId = UNAUTHENTICATED, amount: number): void => turns.add(merchantId, amount),
    taken: turns.taken,
  };
};
type Shares = ReturnType<typeof createShares>;

const LATE = ['the turn of this request did not come in time'];

/** Holds a place until `work` ends and its reply is out. 503 and undefined where the turn comes too late. */
export const inTurn = async <T>(
  name: keyof RequestTurns,
  reply: FastifyReply,
  work: () => Promise<T>,
): Promise<T | undefined> => {
  const { turns, turnMs } = reply.server.lifecycle;
  const late = AbortSignal.timeout(turnMs);
  const begin = async () => (reply.raw.destroyed ? undefined : work());
  try {
    return await turns[name].with(merchantOf(reply), late, begin);
  } catch (error) {
    if (error !== late.reason) throw error;
    reject(reply, 'SERVICE_UNAVAILABLE', LATE, RETRY_LATER);
    return undefined;
  }
};

export const UNREAD_BYTES_MAX = 64 * 1024 * 1024;
/** Shorter responses are bounded by the places of their requests. */
const LARGE_BYTES = 16_384;
const STALLED_MS = 30_000;
/** A client has to read so much in STALLED_MS, on average. */
const READ_BYTES_MIN = PAGE_BYTES_MAX;

const isOneText = (payload: unknown): payload is string | Buffer =>
  typeof payload === 'string' || Buffer.isBuffer(payload);

/** Also where the client left long ago. Node emits `close` once, and `once` costs more. */
export const whenGone = (response: ServerResponse, gone: () => void): void => {
  if (response.destroyed) gone();
  else response.on('close', gone);
};

/** Closes the connection of a response that is not read in time; with `app.inject` there is none. */
const letGoIfSlow = (response: ServerResponse, bytes: number, stalledMs: number): void => {
  const { socket } = response.req;
  // Nearly every response is with the system as soon as it is sent, and a timer costs more than all of that.
  if (!(socket instanceof Socket) || (response.writableEnded && response.writableLength === 0))
    return;
  // Of a longer one some bytes have to be read all the time. Node restores its own time-out afterwards.
  if (bytes > READ_BYTES_MIN) socket.setTimeout(stalledMs);
  const times = Math.max(1, Math.ceil(bytes / READ_BYTES_MIN));
  const slow = setTimeout(() => socket.destroy(), stalledMs * times).unref();
  whenGone(response, () => clearTimeout(slow));
};

const TOO_MANY = 'too many responses are not read yet';

const refusal = (reply: FastifyReply): string => {
  reply.removeHeader('etag').headers(RETRY_LATER).type(JSON_TYPE).code(UNAVAILABLE);
  return errorBody('SERVICE_UNAVAILABLE', [TOO_MANY], new Date().toISOString());
};

/** Call it before the first route, and before hooks that look at the payload. */
export const addShares = (app: FastifyInstance, stalledMs: number = STALLED_MS): void => {
  const { places, unread } = app.lifecycle;
  const takePlace: onRequestHookHandler = (request, reply, done) => {
    const merchantId = request.principal?.merchantId;
    if (places.isFull(merchantId)) {
      reject(reply, 'SERVICE_UNAVAILABLE', ['too many requests at once'], RETRY_LATER);
      return;
    }
    places.take(merchantId, 1);
    request.hasPlace = true;
    done();
  };
  app.decorateRequest('hasPlace', false);
  app.decorate('takePlace', takePlace);
  app.addHook('onSend', (request, reply, payload, done) => {
    const { hasPlace, principal, method } = request;
    const merchantId = principal?.merchantId;
    const leave = () => places.take(merchantId, -1);
    // A stream that ends before its first byte comes here again, as an error.
    request.hasPlace = false;
    // A request whose client has left is carried out and leaves its place here. Streams have their own limit.
    if (hasPlace && isOneText(payload)) whenGone(reply.raw, leave);
    else if (hasPlace) leave();
    if (!isOneText(payload)) return done();
    // Only a GET is refused: any other request has been carried out, and its response says so.
    const mayRefuse = method === 'GET' && payload.length > LARGE_BYTES;
    const sent = mayRefuse && unread.isFull(merchantId) ? refusal(reply) : payload;
    const { length: bytes } = sent;
    process.nextTick(letGoIfSlow, reply.raw, bytes, stalledMs);
    if (bytes > LARGE_BYTES) {
      unread.take(merchantId, bytes);
      whenGone(reply.raw, () => unread.take(merchantId, -bytes));
    }
    done(null, sent);
  });
};
