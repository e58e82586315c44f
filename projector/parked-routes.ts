/**
 * The operator's routes of the projector. Here those over parked payments: which documents stopped
 * at an event that could not be applied, and another try after the cause is gone (faults P5). Scope
 * `ops:admin`; a token of one merchant sees its own.
 */
import type { FastifyInstance, FastifyRequest, onRequestHookHandler } from 'fastify';
import { PAYMENT_ID_FORM, parsePaymentId } from '../shared/http/contract.ts';
import { JSON_TYPE, refuse } from '../shared/http/errors.ts';
import type {} from '../shared/http/server/app.ts';
import type { ParkedPayment, PaymentViewsReader } from '../shared/read-models/port.ts';
import type { Projector } from './compose.ts';
import {
  type ProjectionRoutes,
  refuseForNow,
  registerProjectionRoutes,
} from './projection-routes.ts';

export type ProjectorOps = {
  /** Token and scope `ops:admin`. */
  guard: onRequestHookHandler;
  projector: Pick<Projector, 'retryParked'> & ProjectionRoutes['projector'];
  views: Pick<PaymentViewsReader, 'parked' | 'getAny'>;
};

const LISTED_MAX = 1_000;

/** Registers the routes on an app that has been built (shared/http/server/app.ts). */
export const registerProjectorOps = (app: FastifyInstance, ops: ProjectorOps): void => {
  const { guard: onRequest, projector, views } = ops;
  registerProjectionRoutes(app, { guard: onRequest, projector });

  /** A payment parked at its first event has no document that says whose it is. */
  const isTheirs = async ({ caller }: FastifyRequest, paymentId: string): Promise<boolean> =>
    caller?.merchantId === '*' ||
    (await views.getAny(paymentId))?.merchantId === caller?.merchantId;

  const parkedFor = async (request: FastifyRequest): Promise<ParkedPayment[]> => {
    const theirs: ParkedPayment[] = [];
    for (const parked of await views.parked(LISTED_MAX)) {
      if (await isTheirs(request, parked.paymentId)) theirs.push(parked);
    }
    return theirs;
  };

  app.get('/ops/v1/dead-letters', { onRequest }, async (request, reply) => {
    const deadLetters = await parkedFor(request);
    return reply.type(JSON_TYPE).send(JSON.stringify({ deadLetters }));
  });

  app.post<{ Params: { paymentId: string } }>(
    '/ops/v1/dead-letters/:paymentId/retry',
    { onRequest },
    async (request, reply) => {
      const paymentId = parsePaymentId(request.params.paymentId);
      if (paymentId === undefined) return refuse(reply, 'INVALID_PAYMENT_ID', [PAYMENT_ID_FORM]);
      const isParked = (await parkedFor(request)).some((one) => one.paymentId === paymentId);
      if (!isParked) return refuse(reply, 'PAYMENT_NOT_FOUND', ['no parked payment has this id']);
      request.paymentId = paymentId;
      let whole: boolean;
      try {
        whole = await projector.retryParked(paymentId);
      } catch (error) {
        return refuseForNow(reply, error);
      }
      const still = (await views.parked(LISTED_MAX)).find((one) => one.paymentId === paymentId);
      const body = { paymentId, whole, ...(still && { at: still.revision, reason: still.reason }) };
      return reply.type(JSON_TYPE).send(JSON.stringify(body));
    },
  );
};
