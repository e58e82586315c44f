/** The GET routes for merchants, and the pages about the API (interface, "Get payment"). */
import type { FastifyInstance } from 'fastify';
import { createMerchantLookup } from '../audit/merchants.ts';
import { UnreadableStream } from '../shared/event-store/errors.ts';
import { followPaymentStates } from '../shared/event-store/payment-states.ts';
import type { AuthHooks } from '../shared/http/auth/hooks.ts';
import { JSON_TYPE, reject } from '../shared/http/errors.ts';
import { PaymentList, PaymentResponse } from '../shared/http/payment-schemas.ts';
import {
  asJson,
  joinRoutes,
  type RoutesOf,
  registerRoutes,
  routeWith,
} from '../shared/http/route.ts';
import { inTurn } from '../shared/http/server/shares.ts';
import { createStreams } from '../shared/http/server/streams.ts';
import type { PaymentDocument } from '../shared/read-models/port.ts';
import { onError } from '../shared/runtime/error-text.ts';
import type { WebhookSecret } from '../webhooks/signer.ts';
import { registerDocs } from './docs/routes.ts';
import { getPayment, type QueryDeps } from './get-payment.ts';
import { ListParameters, listPayments } from './list-payments.ts';
import { WEBHOOK_EVENT_ROUTES, type WebhookEventDeps } from './webhook-events.ts';

/** One that cannot be read must not fail the page of the others (P5). */
const bodyFor =
  (deps: QueryDeps, merchantId: string) =>
  async ({ paymentId, body }: PaymentDocument): Promise<string> => {
    const unreadable = onError(UnreadableStream, () => undefined);
    const found = await getPayment(deps, paymentId, merchantId).catch(unreadable);
    return found?.body ?? body;
  };

const route = routeWith<QueryDeps>();

const PAYMENT_ROUTES = {
  getPayment: route({
    request: { paymentId: 'INVALID_PAYMENT_ID' },
    responses: {
      200: {
        description: 'The payment as of now.',
        content: asJson(PaymentResponse),
        headers: ['ETag'],
      },
    },
    handle: async (deps, { principal, paymentId }, reply) => {
      const found = await getPayment(deps, paymentId, principal.merchantId);
      // The response is the same for another merchant's payment.
      if (found === undefined) return reject(reply, 'PAYMENT_NOT_FOUND');
      reply.request.paymentId = paymentId;
      return reply.header('etag', `"${found.revision}"`).type(JSON_TYPE).send(found.body);
    },
  }),
  listPayments: route({
    request: { query: ListParameters },
    responses: { 200: { description: 'A page of payments.', content: asJson(PaymentList) } },
    handle: async (deps, { principal: { merchantId }, query }, reply) => {
      const page = await inTurn('searches', reply, () =>
        listPayments(deps, merchantId, query, bodyFor(deps, merchantId)),
      );
      return page === undefined ? reply : reply.type(JSON_TYPE).send(page);
    },
  }),
} satisfies Partial<RoutesOf<'query-api', QueryDeps>>;

export const QUERY_ROUTES: RoutesOf<'query-api', QueryDeps & WebhookEventDeps> = joinRoutes(
  PAYMENT_ROUTES,
  WEBHOOK_EVENT_ROUTES,
);

export const registerQueryApi = (
  app: FastifyInstance,
  authHooks: AuthHooks,
  { webhookSecret: secret, ...deps }: QueryDeps & { webhookSecret: WebhookSecret },
): void => {
  const { store, readModels } = deps;
  const webhookEvents = {
    store,
    readModels,
    merchants: createMerchantLookup(store, readModels),
    states: followPaymentStates(store),
    streams: createStreams(app),
    secret,
  };
  registerRoutes(app, authHooks, QUERY_ROUTES, { ...deps, webhookEvents });
  registerDocs(app);
};
