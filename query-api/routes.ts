/** The GET routes for merchants, and the pages about the API (interface, "Get payment"). */
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { createMerchantLookup } from '../audit/merchants.ts';
import { UnreadableStream } from '../shared/event-store/errors.ts';
import { followPaymentStates } from '../shared/event-store/payment-states.ts';
import type { AuthHooks } from '../shared/http/auth/hooks.ts';
import { cursorOf, placeAfter } from '../shared/http/cursor.ts';
import { JSON_TYPE, reject } from '../shared/http/errors.ts';
import { asNumber, moment, optionalText } from '../shared/http/fields.ts';
import { PaymentList, PaymentResponse, PaymentStatus } from '../shared/http/payment-schemas.ts';
import {
  joinRoutes,
  okJson,
  type RoutesOf,
  registerRoutes,
  routeWith,
} from '../shared/http/route.ts';
import { inTurn } from '../shared/http/server/shares.ts';
import { createStreams } from '../shared/http/server/streams.ts';
import { foldDamaged } from '../shared/read-models/fold-damaged.ts';
import type { PaymentDocument } from '../shared/read-models/port.ts';
import { onError } from '../shared/runtime/error-text.ts';
import type { WebhookSecret } from '../webhooks/signer.ts';
import { registerDocs } from './docs/routes.ts';
import { getPayment, type QueryDeps } from './get-payment.ts';
import { WEBHOOK_EVENT_ROUTES, type WebhookEventDeps } from './webhook-events.ts';

const LIMIT_DEFAULT = 20;
const LIMIT_MAX = 100;

const LIMIT_WORDING = `must be an integer from 1 to ${LIMIT_MAX}`;
const LIMIT_PATTERN = /^([1-9][0-9]?|100)$/;

const NAMES = ['status', 'from', 'to', 'merchantReference', 'limit', 'cursor'] as const;

/** Unknown parameters are rejected: without a misspelt filter the list would hold too much. */
const ListParameters = z.strictObject(
  {
    status: PaymentStatus.optional().describe('Only payments in this state.'),
    from: moment().describe('Created at this time or later.'),
    to: moment().describe('Created before this time.'),
    merchantReference: optionalText()
      .refine((value) => value !== '', 'must not be empty')
      .meta({ minLength: 1, description: 'Only payments with exactly this reference.' }),
    limit: optionalText()
      .refine((value) => value === undefined || LIMIT_PATTERN.test(value), LIMIT_WORDING)
      .meta({ ...asNumber(1, LIMIT_MAX), default: LIMIT_DEFAULT, description: 'How many at most.' })
      .transform((value) => Number(value ?? LIMIT_DEFAULT)),
    cursor: optionalText()
      .transform((value) => (value === undefined ? undefined : (placeAfter(value) ?? null)))
      .refine((place) => place !== null, 'must be the nextCursor of an earlier answer')
      .meta({ minLength: 1, description: 'The `nextCursor` of the page before.' }),
  } satisfies Record<(typeof NAMES)[number], z.ZodType>,
  {
    error: ({ code }) =>
      code === 'unrecognized_keys' ? `the parameters are ${NAMES.join(', ')}` : undefined,
  },
);

/** Throws ReadModelsUnavailable and StoreUnavailable. */
const listPayments = async (
  deps: QueryDeps,
  merchantId: string,
  request: z.output<typeof ListParameters>,
): Promise<string> => {
  const { limit, status, from, to, merchantReference, cursor } = request;
  const after = cursor ?? undefined;
  const search = { status, from, to, merchantReference, after, merchantId };
  const { documents, searchedTo } = await deps.readModels.search(search, limit);
  const page = await foldDamaged(deps.store, search, documents);
  // One that cannot be read must not fail the page of the others (P5).
  const unreadable = onError(UnreadableStream, () => undefined);
  const bodyOf = async (document: PaymentDocument): Promise<string> => {
    if (!document.parked) return deps.bodies.bodyOf(document);
    const found = await getPayment(deps, document.paymentId, merchantId).catch(unreadable);
    return deps.bodies.bodyOf(found ?? document);
  };
  const bodies = await Promise.all(page.map(bodyOf));
  const next = searchedTo === undefined ? '' : `,"nextCursor":"${cursorOf(searchedTo)}"`;
  return `{"payments":[${bodies.join(',')}]${next}}`;
};

const route = routeWith<QueryDeps>();

const PAYMENT_ROUTES = {
  getPayment: route({
    request: { paymentId: 'INVALID_PAYMENT_ID' },
    responses: okJson(PaymentResponse),
    handle: async (deps, { principal, paymentId }, reply) => {
      const found = await getPayment(deps, paymentId, principal.merchantId);
      // The response is the same for another merchant's payment.
      if (found === undefined) return reject(reply, 'PAYMENT_NOT_FOUND');
      reply.request.paymentId = paymentId;
      const body = found.isOpened ? found.body : await deps.bodies.bodyOf(found);
      return reply.header('etag', `"${found.revision}"`).type(JSON_TYPE).send(body);
    },
  }),
  listPayments: route({
    request: { query: ListParameters },
    responses: okJson(PaymentList),
    handle: async (deps, { principal: { merchantId }, query }, reply) => {
      const page = await inTurn('searches', reply, () => listPayments(deps, merchantId, query));
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
    openText: deps.openText,
    streams: createStreams(app),
    secret,
  };
  registerRoutes(app, authHooks, QUERY_ROUTES, { ...deps, webhookEvents });
  registerDocs(app);
};
