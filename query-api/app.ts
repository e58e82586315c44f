/** The GET route of the contract (interface, "Get payment"; decisions §9). */
import type { FastifyInstance, onRequestHookHandler } from 'fastify';
import type {} from '../shared/http/app.ts';
import { PAYMENT_ID_FORM, parsePaymentId } from '../shared/http/contract.ts';
import { JSON_TYPE, refuse } from '../shared/http/errors.ts';
import { getPayment, type QueryRoom } from './get-payment.ts';

export type QueryApi = {
  /** Token, scope and rate limit (shared/http/guard.ts). */
  guard: onRequestHookHandler;
  room: QueryRoom;
};

/** Registers the read routes on an app that has been built (shared/http/app.ts). */
export const registerQueryApi = (app: FastifyInstance, { guard, room }: QueryApi): void => {
  app.get<{ Params: { paymentId: string } }>(
    '/api/v1/payments/:paymentId',
    { onRequest: guard },
    async (request, reply) => {
      const paymentId = parsePaymentId(request.params.paymentId);
      if (paymentId === undefined) return refuse(reply, 'INVALID_PAYMENT_ID', [PAYMENT_ID_FORM]);
      const found = await getPayment(room, paymentId);
      // Another merchant's payment does not exist for this one, in the same words.
      if (found === undefined || found.merchantId !== request.caller?.merchantId) {
        return refuse(reply, 'PAYMENT_NOT_FOUND');
      }
      request.paymentId = paymentId;
      return reply.header('etag', `"${found.revision}"`).type(JSON_TYPE).send(found.body);
    },
  );
};
