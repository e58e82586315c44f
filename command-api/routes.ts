/** The order of checks is gaps §1. Up to existence nothing is stored and no provider is called. */
import type { FastifyReply } from 'fastify';
import { ERASURE_ROUTES, type ErasureDeps } from '../personal-data/erasure/routes.ts';
import { STRIPE_WEBHOOK_ROUTES, type StripeWebhookDeps } from '../providers/stripe/notices.ts';
import { UnreadableStream } from '../shared/event-store/errors.ts';
import { isUnreadableOf } from '../shared/event-store/fold-stream.ts';
import { reject } from '../shared/http/errors.ts';
import { PaymentFailureResponse, PaymentResponse } from '../shared/http/payment-schemas.ts';
import { type Sender, senderOf } from '../shared/http/request.ts';
import { startBudget } from '../shared/http/request-budget.ts';
import {
  asJson,
  type Input,
  joinRoutes,
  okJson,
  type RequestForm,
  type RoutesOf,
  routeWith,
} from '../shared/http/route.ts';
import { ReadModelsUnavailable } from '../shared/read-models/errors.ts';
import type { ReadModelsReader } from '../shared/read-models/port.ts';
import { longRuns, looksLikeCard, runsHoldCard } from '../shared/runtime/card-numbers.ts';
import type { Config } from '../shared/runtime/config.ts';
import { onError } from '../shared/runtime/error-text.ts';
import type { WebhookDeps } from '../webhooks/endpoints/requests.ts';
import { WEBHOOK_ROUTES } from '../webhooks/endpoints/routes.ts';
import { ATTENTION_ROUTES, type AttentionApi } from './back-office/attention/routes.ts';
import { OPERATOR_ROUTES, type OperatorDeps } from './back-office/by-hand/routes.ts';
import type { ProviderAhead, ReadOnly } from './back-office/provider-ahead/provider-ahead.ts';
import { ACKNOWLEDGE_ROUTES, type AcknowledgeDeps } from './back-office/provider-ahead/routes.ts';
import {
  RECONCILE_PAYMENT_ROUTES,
  RECONCILE_ROUTES,
  type ReconcileDeps,
  type ReconcilePaymentDeps,
} from './back-office/reconcile/routes.ts';
import { changePayment } from './change-payment.ts';
import { createPayment, uniqueReferenceOf } from './create-payment.ts';
import type { CommandDeps } from './deps.ts';
import { type LoadedPayment, notInLog } from './payment-log.ts';
import { type ChangeKind, changeRequestOf, earlierChange, earlierCreate } from './repeats.ts';
import { readCreate } from './request/payment-request.ts';
import {
  CaptureRequest,
  type ChangeContent,
  parseCapture,
  parseRefund,
  RefundRequest,
  readChange,
} from './request/read-request.ts';
import { PaymentRequest } from './request/schemas.ts';
import { type RespondDeps, respondInBudget } from './responses.ts';

export type CommandApi = RespondDeps & {
  readModels: Pick<ReadModelsReader, 'get'>;
  commands: CommandDeps;
  config: Pick<Config, 'rules' | 'merchants'>;
  requestBudgetMs: number;
  onOtherCard(sender: Sender): void;
  providerAhead: Pick<ProviderAhead, 'readOnly'>;
};

const route = routeWith<CommandApi>();

const PAYMENT_ROUTES = {
  createPayment: route({
    request: {
      movesMoney: true,
      read: readCreate,
      body: { schema: PaymentRequest, required: true },
    },
    responses: {
      ...okJson(PaymentResponse),
      202: asJson(PaymentResponse),
      402: asJson(PaymentFailureResponse),
    },
    handle: async (api, { principal, arrivedAtMs, content }, reply) => {
      const { request, key, holdsOtherCard } = content;
      const rules = api.config.merchants.get(principal.merchantId) ?? api.config.rules;
      // An earlier request with this reference may have been carried out.
      if (uniqueReferenceOf({ ...request, rules }) !== undefined)
        reply.request.paymentOutcome = 'UNKNOWN';
      const readOnly = await api.providerAhead.readOnly();
      if (readOnly !== undefined) return rejectReadOnly(reply, readOnly);
      const budget = startBudget(api.requestBudgetMs, arrivedAtMs);
      const sender = senderOf(principal, reply);
      if (holdsOtherCard) api.onOtherCard(sender);
      return respondInBudget(api, reply, {
        command: 'create',
        budget,
        run: (reach) => createPayment(api.commands, { sender, request, key, rules, budget, reach }),
        earlier: () => earlierCreate(api.commands, sender, key),
      });
    },
  }),
  capturePayment: route({
    request: {
      movesMoney: true,
      paymentId: 'INVALID_REQUEST',
      read: readChange(parseCapture),
      body: { schema: CaptureRequest, required: false },
    },
    responses: okJson(PaymentResponse),
    handle: (api, input, reply) => changeFor(api, 'capture', input, reply),
  }),
  voidPayment: route({
    request: {
      movesMoney: true,
      paymentId: 'INVALID_PAYMENT_ID',
      read: readChange(),
    },
    responses: okJson(PaymentResponse),
    handle: (api, input, reply) => changeFor(api, 'void', input, reply),
  }),
  refundPayment: route({
    request: {
      movesMoney: true,
      paymentId: 'INVALID_REQUEST',
      read: readChange(parseRefund),
      body: { schema: RefundRequest, required: false },
    },
    responses: okJson(PaymentResponse),
    handle: (api, input, reply) => changeFor(api, 'refund', input, reply),
  }),
} satisfies Partial<RoutesOf<'command-api', CommandApi>>;

export const COMMAND_ROUTES: RoutesOf<
  'command-api',
  CommandApi &
    OperatorDeps &
    ReconcileDeps &
    ReconcilePaymentDeps &
    AcknowledgeDeps &
    WebhookDeps &
    StripeWebhookDeps &
    ErasureDeps &
    AttentionApi
> = joinRoutes(
  PAYMENT_ROUTES,
  OPERATOR_ROUTES,
  STRIPE_WEBHOOK_ROUTES,
  WEBHOOK_ROUTES,
  RECONCILE_ROUTES,
  RECONCILE_PAYMENT_ROUTES,
  ACKNOWLEDGE_ROUTES,
  ERASURE_ROUTES,
  ATTENTION_ROUTES,
);

const AHEAD = [
  'the provider holds operations that the event log does not, as after a restore, or could not be compared: the service is read-only',
  'an operator opens the service with payments reconcile --acknowledge',
];
const COMPARING = [
  "the provider's ledger is still being compared with the event log; nothing was stored",
];

/** When the provider is ahead, a person has to act first. */
const rejectReadOnly = (reply: FastifyReply, why: ReadOnly): FastifyReply =>
  why === 'ahead'
    ? reject(reply, 'SERVICE_UNAVAILABLE', AHEAD, { 'retry-after': '30' })
    : reject(reply, 'SERVICE_UNAVAILABLE', COMPARING, { 'retry-after': '1' });

type ChangeInput = Pick<Input<RequestForm>, 'principal' | 'arrivedAtMs'> & {
  paymentId: string;
  content: ChangeContent;
};

const changeFor = async (
  api: CommandApi,
  kind: ChangeKind,
  { principal, arrivedAtMs, paymentId, content: { request, texts, key } }: ChangeInput,
  reply: FastifyReply,
): Promise<FastifyReply> => {
  const budget = startBudget(api.requestBudgetMs, arrivedAtMs);
  const sender = senderOf(principal, reply);
  const payment = await ownPayment(api, sender, paymentId, reply);
  if (payment === undefined) return reply;
  reply.request.paymentId = paymentId;
  const { bin, last4 } = payment.paymentMethod.card;
  if (runsHoldCard(texts.flatMap(longRuns), bin, last4))
    return reject(reply, 'INVALID_REQUEST', ['the request must not hold the card number']);
  if (request.reason !== undefined && looksLikeCard(request.reason)) api.onOtherCard(sender);
  const readOnly = await api.providerAhead.readOnly();
  if (readOnly !== undefined) return rejectReadOnly(reply, readOnly);
  const change = { kind, paymentId, ...request };
  const recognised = changeRequestOf(api.commands, sender, change, key);
  const sent = { sender, change, key, request: recognised, budget };
  return respondInBudget(api, reply, {
    command: kind,
    budget,
    run: (reach) => changePayment(api.commands, { ...sent, reach }),
    earlier: () => earlierChange(api.commands, sent),
  });
};

/** Another merchant's payment does not exist, in the same words. Throws StreamNotWhole. */
const ownPayment = async (
  { commands, readModels }: CommandApi,
  { merchantId }: Sender,
  paymentId: string,
  reply: FastifyReply,
): Promise<LoadedPayment['state'] | undefined> => {
  const unreadable = onError(UnreadableStream, (error) => {
    if (isUnreadableOf(error, merchantId)) throw error;
    return undefined;
  });
  const payment = await commands.paymentLog.load(paymentId, 'cache').catch(unreadable);
  if (payment !== undefined && payment.state.merchantId === merchantId) return payment.state;
  const isKnown = async () =>
    (await readModels.get(paymentId, merchantId).catch(unavailable)) !== undefined;
  if (payment === undefined && (await isKnown())) throw notInLog(paymentId);
  reject(reply, 'PAYMENT_NOT_FOUND');
  return undefined;
};

const unavailable = onError(ReadModelsUnavailable, () => undefined);
