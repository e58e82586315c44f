/** The GET routes for merchants, and the pages about the API (interface, "Get payment"; gaps §9). */
import type { FastifyInstance, FastifyRequest, onRequestHookHandler } from 'fastify';
import { UnreadableStream } from '../shared/event-store/errors.ts';
import type { Principal } from '../shared/http/auth/authenticate.ts';
import { JSON_TYPE, reject } from '../shared/http/errors.ts';
import { PAYMENT_ID_FORM, parsePaymentId } from '../shared/http/payment-id.ts';
import type {} from '../shared/http/server/app.ts';
import type { PaymentDocument } from '../shared/read-models/port.ts';
import { registerDocs } from './docs/routes.ts';
import { getPayment, type QueryDeps } from './get-payment.ts';
import { listPayments, parseList } from './list-payments.ts';

export type QueryApi = {
  /** Token, scope and rate limit (shared/http/auth/authorize.ts). */
  authorize: onRequestHookHandler;
  deps: QueryDeps;
};

const principalOf = ({ principal }: FastifyRequest): Principal => {
  if (principal === undefined) throw new Error('a route without its guard');
  return principal;
};

/** Registers the read routes on an app that has been built (shared/http/server/app.ts). */
export const registerQueryApi = (app: FastifyInstance, { authorize, deps }: QueryApi): void => {
  app.get<{ Params: { paymentId: string } }>(
    '/api/v1/payments/:paymentId',
    { onRequest: authorize },
    async (request, reply) => {
      const paymentId = parsePaymentId(request.params.paymentId);
      if (paymentId === undefined) return reject(reply, 'INVALID_PAYMENT_ID', [PAYMENT_ID_FORM]);
      const found = await getPayment(deps, paymentId, principalOf(request).merchantId);
      // Another merchant's payment does not exist for this one, in the same words.
      if (found === undefined) return reject(reply, 'PAYMENT_NOT_FOUND');
      request.paymentId = paymentId;
      return reply.header('etag', `"${found.revision}"`).type(JSON_TYPE).send(found.body);
    },
  );
  app.get('/api/v1/payments', { onRequest: authorize }, async (request, reply) => {
    const parsed = parseList(request.query);
    if (!parsed.ok) return reject(reply, 'INVALID_REQUEST', parsed.details);
    const { merchantId } = principalOf(request);
    // One payment that cannot be read must not take the others' page along (P5).
    const bodyOf = async ({ paymentId, body }: PaymentDocument): Promise<string> => {
      try {
        return (await getPayment(deps, paymentId, merchantId))?.body ?? body;
      } catch (error) {
        if (error instanceof UnreadableStream) return body;
        throw error;
      }
    };
    return reply
      .type(JSON_TYPE)
      .send(await listPayments(deps.readModels, merchantId, parsed.request, bodyOf));
  });

  registerDocs(app);
};
