/**
 * The four POST routes for merchants. The order of checks is gaps §1: token, scope, rate, shape,
 * existence, state and amounts, provider. Up to existence nothing is stored and no provider is
 * called.
 */
import type { FastifyReply } from 'fastify';
import { AppendOutcomeUnknown } from '../shared/event-store/errors.ts';
import type { Principal as Sender } from '../shared/http/auth/tokens.ts';
import { JSON_TYPE, reject } from '../shared/http/errors.ts';
import { PaymentFailureResponse, PaymentResponse } from '../shared/http/responses.ts';
import {
  asJson,
  type RequestForm,
  type ResponseForm,
  type Route,
  type RoutesOf,
} from '../shared/http/route.ts';
import { unresolvedOperations } from '../shared/payment/state.ts';
import type { ReadModelsReader } from '../shared/read-models/port.ts';
import { textsHoldCard } from '../shared/runtime/card-numbers.ts';
import { type ChangeKind, changePayment, identityOf } from './change-payment.ts';
import { createPayment } from './create-payment.ts';
import type { CommandDeps, Principal } from './deps.ts';
import { OPERATOR_ROUTES, type OperatorDeps } from './operator/routes.ts';
import type { LoadedPayment } from './payment-log.ts';
import { RECONCILE_ROUTES, type ReconcileDeps } from './reconcile/routes.ts';
import {
  CaptureRequest,
  parseCapture,
  parseRefund,
  RefundRequest,
} from './request/change-request.ts';
import { PaymentRequest } from './request/payment-request.ts';
import { type ChangeContent, readChange, readCreate, readVoid } from './request/read-request.ts';
import {
  type Budget,
  BudgetSpent,
  startBudget,
  type Waiting,
  withinBudget,
} from './request-budget.ts';
import { type CommandResponse, tryLater, unknownOutcome } from './responses.ts';

export type CommandApi = {
  deps: CommandDeps;
  readModels: Pick<ReadModelsReader, 'waitForRevision'>;
  requestBudgetMs: number;
  /** The requests that wait; a stop ends their waits before their connections are cut. */
  waiting: Waiting;
  /** Called once for each command, with its time in seconds. */
  onCommand(command: string, outcome: CommandResponse['outcome'], seconds: number): void;
};

/** How long a response waits for the read models; a GET folds the stream where that was too short. */
const READ_MODELS_WAIT_MS = 500;

const REPLAYED = 'Idempotent-Replayed';

const ended = (description: string, notAllowed: string): Record<number, ResponseForm> => ({
  200: { description, content: asJson(PaymentResponse), headers: ['ETag', REPLAYED] },
  422: { description: notAllowed, headers: [REPLAYED] },
  503: {
    description:
      'The provider could not be reached, or its answer was lost (then `Location` is the payment, and its outcome is looked up), or the service cannot take the request now.',
    headers: ['Retry-After', 'Location', REPLAYED],
  },
});

const principalOf = ({ merchantId, actor }: Sender, { request }: FastifyReply): Principal => ({
  merchantId,
  actor,
  requestId: request.id,
});

const route = <const F extends RequestForm>(own: Route<CommandApi, F>) => own;

const PAYMENT_ROUTES = {
  createPayment: route({
    request: {
      read: readCreate,
      body: { schema: PaymentRequest, required: true },
      headers: ['IdempotencyKey', 'UserAgent'],
    },
    responses: {
      ...ended(
        'The payment, AUTHORIZED or CAPTURED.',
        'A business rule forbids it, or the Idempotency-Key came with another request.',
      ),
      402: {
        description: 'The provider declined it; the payment is FAILED.',
        content: asJson(PaymentFailureResponse),
        headers: [REPLAYED],
      },
    },
    handle: (api, { principal, content: { request, key } }, reply) => {
      const budget = startBudget(api.requestBudgetMs);
      return run(api, reply, {
        command: 'create',
        budget,
        task: createPayment(api.deps, principalOf(principal, reply), request, key, budget),
        // Creates under one key wait for one another and for nothing else.
        repeatsRunning: () => key !== undefined,
      });
    },
  }),
  capturePayment: route({
    request: {
      paymentId: 'INVALID_REQUEST',
      read: readChange(parseCapture),
      body: { schema: CaptureRequest, required: false },
      headers: ['IdempotencyKey'],
    },
    responses: ended(
      'The payment, CAPTURED.',
      'The payment cannot be captured, or not with this amount.',
    ),
    handle: (api, input, reply) => change(api, 'capture', input, reply),
  }),
  voidPayment: route({
    request: { paymentId: 'INVALID_PAYMENT_ID', read: readVoid, headers: ['IdempotencyKey'] },
    responses: ended('The payment, VOIDED.', 'The payment is not AUTHORIZED.'),
    handle: (api, input, reply) => change(api, 'void', input, reply),
  }),
  refundPayment: route({
    request: {
      paymentId: 'INVALID_REQUEST',
      read: readChange(parseRefund),
      body: { schema: RefundRequest, required: false },
      headers: ['IdempotencyKey'],
    },
    responses: ended(
      'The payment, REFUNDED, or CAPTURED while some is left.',
      'The payment cannot be refunded, or not with this amount.',
    ),
    handle: (api, input, reply) => change(api, 'refund', input, reply),
  }),
};

/** Every route of the command API. */
export const COMMAND_ROUTES: RoutesOf<'command-api', CommandApi & OperatorDeps & ReconcileDeps> = {
  ...PAYMENT_ROUTES,
  ...OPERATOR_ROUTES,
  ...RECONCILE_ROUTES,
};

type ChangeInput = { principal: Sender; paymentId: string; content: ChangeContent };

const change = async (
  api: CommandApi,
  kind: ChangeKind,
  { principal: sender, paymentId, content: { request, texts, key } }: ChangeInput,
  reply: FastifyReply,
): Promise<FastifyReply> => {
  const budget = startBudget(api.requestBudgetMs);
  const principal = principalOf(sender, reply);
  const payment = await owned(api, principal, paymentId, reply);
  if (payment === undefined) return reply;
  reply.request.paymentId = paymentId;
  // seeded bug: card-in-change
  if (textsHoldCard(texts, payment.bin, payment.last4)) {
    return reject(reply, 'INVALID_REQUEST', ['the request must not hold the card number']);
  }
  const requested = { kind, paymentId, ...request };
  return run(api, reply, {
    command: kind,
    budget,
    task: changePayment(api.deps, principal, requested, key, budget),
    repeatsRunning: () => isRunning(api, principal, requested, key),
  });
};

/** The merchant's payment; another merchant's does not exist for it, in the same words. */
const owned = async (
  { deps }: CommandApi,
  { merchantId }: Principal,
  paymentId: string,
  reply: FastifyReply,
): Promise<LoadedPayment['state'] | undefined> => {
  const payment = await deps.paymentLog.load(paymentId, 'cache');
  // seeded bug: command-of-merchant
  if (payment !== undefined && payment.state.merchantId === merchantId) return payment.state;
  reject(reply, 'PAYMENT_NOT_FOUND');
  return undefined;
};

/** Whether the operation that a repeat waits for is under way in this process. */
const isRunning = (
  { deps }: CommandApi,
  principal: Principal,
  requested: Parameters<typeof identityOf>[2],
  key: string | undefined,
): boolean => {
  const payment = deps.paymentLog.peek(requested.paymentId);
  const { keyHash } = identityOf(deps, principal, requested, key);
  if (keyHash === undefined || payment === undefined) return false;
  return unresolvedOperations(payment.state).some((o) => o.identity.keyHash === keyHash);
};

type Running = {
  command: string;
  budget: Budget;
  task: Promise<CommandResponse>;
  /** Asked when the budget is spent before the command had its turn. */
  repeatsRunning(): boolean;
};

const run = async (
  api: CommandApi,
  reply: FastifyReply,
  running: Running,
): Promise<FastifyReply> => {
  const { command, budget } = running;
  const startedAt = performance.now();
  const response = await responseOf(running, api.waiting);
  if (response.seen !== undefined) {
    const { paymentId, revision } = response.seen;
    reply.request.paymentId = paymentId;
    await api.readModels.waitForRevision(
      paymentId,
      revision,
      Math.min(READ_MODELS_WAIT_MS, budget.leftMs()),
    );
  }
  api.onCommand(command, response.outcome, (performance.now() - startedAt) / 1000);
  return send(reply, response);
};

/** No provider call follows an intent that may not be stored (operate.ts). */
const storedOrNot = (): CommandResponse =>
  tryLater('SERVICE_UNAVAILABLE', [
    'it is not known whether anything was stored; nothing was sent to the provider',
  ]);

/** The command's response, or why there is none yet. Any other error is app.ts's to reject with. */
const responseOf = async (
  { task, budget, repeatsRunning }: Running,
  waiting: Waiting,
): Promise<CommandResponse> => {
  try {
    return await withinBudget(task, budget, waiting);
  } catch (error) {
    // The append and the budget end at one time: whichever comes first, it means the same.
    if (error instanceof AppendOutcomeUnknown) return storedOrNot();
    if (!(error instanceof BudgetSpent)) throw error;
    if (budget.begunOn !== undefined) return unknownOutcome(budget.begunOn);
    if (budget.appending === true) return storedOrNot();
    return repeatsRunning()
      ? tryLater('IDEMPOTENCY_IN_PROGRESS', ['the first request with this key still runs'])
      : tryLater('SERVICE_UNAVAILABLE', ['the turn of this request did not come in time']);
  }
};

const send = (reply: FastifyReply, { status, body, headers }: CommandResponse): FastifyReply =>
  reply
    .code(status)
    .headers(headers ?? {})
    .type(JSON_TYPE)
    .send(body);
