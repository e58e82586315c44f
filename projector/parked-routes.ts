/**
 * The operator's routes of the projector. Here those over parked payments: which documents stopped
 * at an event that could not be applied, and another try after the cause is gone (P5). Scope
 * `ops:admin`; a token of one merchant sees its own.
 */
import type { FastifyInstance, FastifyRequest, onRequestHookHandler } from 'fastify';
import { JSON_TYPE, reject } from '../shared/http/errors.ts';
import { PAYMENT_ID_FORM, parsePaymentId } from '../shared/http/payment-id.ts';
import type {} from '../shared/http/server/app.ts';
import type { ParkedPayment, ReadModelsReader } from '../shared/read-models/port.ts';
import type { Projector } from './compose.ts';
import {
  type ProjectionRoutes,
  registerProjectionRoutes,
  rejectForNow,
} from './projection-routes.ts';

export type ProjectorOps = {
  /** Token and scope `ops:admin`. */
  authorize: onRequestHookHandler;
  projector: Pick<Projector, 'retryParked'> & ProjectionRoutes['projector'];
  readModels: Pick<ReadModelsReader, 'parked' | 'getAny'>;
};

const LISTED_MAX = 1_000;

/** Registers the routes on an app that has been built (shared/http/server/app.ts). */
export const registerProjectorOps = (app: FastifyInstance, ops: ProjectorOps): void => {
  const { authorize: onRequest, projector, readModels } = ops;
  registerProjectionRoutes(app, { authorize: onRequest, projector });

  /** A payment parked at its first event has no document that says whose it is. */
  const isTheirs = async ({ principal }: FastifyRequest, paymentId: string): Promise<boolean> =>
    principal?.merchantId === '*' ||
    (await readModels.getAny(paymentId))?.merchantId === principal?.merchantId;

  const parkedFor = async (request: FastifyRequest): Promise<ParkedPayment[]> => {
    const theirs: ParkedPayment[] = [];
    for (const parked of await readModels.parked(LISTED_MAX)) {
      if (await isTheirs(request, parked.paymentId)) theirs.push(parked);
    }
    return theirs;
  };

  app.get('/ops/v1/parked', { onRequest }, async (request, reply) => {
    const parked = await parkedFor(request);
    return reply.type(JSON_TYPE).send(JSON.stringify({ parked }));
  });

  app.post<{ Params: { paymentId: string } }>(
    '/ops/v1/parked/:paymentId/retry',
    { onRequest },
    async (request, reply) => {
      const paymentId = parsePaymentId(request.params.paymentId);
      if (paymentId === undefined) return reject(reply, 'INVALID_PAYMENT_ID', [PAYMENT_ID_FORM]);
      const isParked = (await parkedFor(request)).some((one) => one.paymentId === paymentId);
      if (!isParked) return reject(reply, 'PAYMENT_NOT_FOUND', ['no parked payment has this id']);
      request.paymentId = paymentId;
      let whole: boolean;
      try {
        whole = await projector.retryParked(paymentId);
      } catch (error) {
        return rejectForNow(reply, error);
      }
      const still = (await readModels.parked(LISTED_MAX)).find(
        (one) => one.paymentId === paymentId,
      );
      const body = { paymentId, whole, ...(still && { at: still.revision, reason: still.reason }) };
      return reply.type(JSON_TYPE).send(JSON.stringify(body));
    },
  );
};
