/**
 * A request has one of MAX_IN_FLIGHT places from its last check before the body until its response is
 * out. One merchant takes at most half of them.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import { RETRY_LATER, reject } from '../errors.ts';
import type { Lifecycle } from './shares.ts';
import { isOneText, whenGone } from './unread.ts';

const leave = ({ places }: Lifecycle, request: FastifyRequest): void => {
  places.take(request.principal?.merchantId, -1);
};

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

/** Call it before the first route. */
export const addPlaces = (app: FastifyInstance): void => {
  const { lifecycle } = app;
  app.decorateRequest('hasPlace', false);
  app.decorate('takePlace', takePlaceIn(lifecycle));
  app.addHook('onSend', (request: FastifyRequest, reply: FastifyReply, payload, done) => {
    // A stream that ends before its first byte comes here again, as an error.
    const { hasPlace } = request;
    request.hasPlace = false;
    // A request whose client has left is still carried out, so it leaves its place here and not before. A
    // stream may go on for hours, and is bound by the number of streams.
    if (hasPlace && isOneText(payload)) whenGone(reply.raw, () => leave(lifecycle, request));
    else if (hasPlace) leave(lifecycle, request);
    done();
  });
};
