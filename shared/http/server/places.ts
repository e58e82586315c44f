/**
 * The places of MAX_IN_FLIGHT. A request has one from its last check before the body, when it is known
 * who sent it, until its response is out: while its body arrives, while it is worked on, and while its
 * response is not read. So half of them are the most that one merchant can keep from the others.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import { RETRY_LATER, reject } from '../errors.ts';
import type { Lifecycle } from './shares.ts';
import { isOneText, whenGone } from './unread.ts';

const leave = ({ places }: Lifecycle, request: FastifyRequest): void => {
  places.take(request.principal?.merchantId, -1);
};

/** The last `onRequest` hook of a route: takes a place, or responds 503 where there is none. */
const takePlaceIn =
  ({ places }: Lifecycle): onRequestHookHandler =>
  (request, reply, done) => {
    const merchantId = request.principal?.merchantId;
    if (places.isFull(merchantId)) {
      reject(reply, 'SERVICE_UNAVAILABLE', ['too many requests at once'], RETRY_LATER);
      return;
    }
    places.take(merchantId, 1);
    request.hasPlace = true;
    done();
  };

/** Gives `app.takePlace`, and lets each request leave its place; call it before the first route. */
export const addPlaces = (app: FastifyInstance): void => {
  const { lifecycle } = app;
  app.decorateRequest('hasPlace', false);
  app.decorate('takePlace', takePlaceIn(lifecycle));
  app.addHook('onSend', (request: FastifyRequest, reply: FastifyReply, payload, done) => {
    // A stream that ends before its first byte comes here again, as an error.
    const { hasPlace } = request;
    request.hasPlace = false;
    // A request whose client has left is still worked on, and leaves its place here, not before. A
    // stream is bound by the number of streams, and may go on for hours.
    if (hasPlace && isOneText(payload)) whenGone(reply.raw, () => leave(lifecycle, request));
    else if (hasPlace) leave(lifecycle, request);
    done();
  });
};
