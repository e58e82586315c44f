/**
 * The four POST routes. The order of checks is gaps §1: token, scope, rate, shape, existence,
 * state and amounts, provider. Up to existence nothing is stored and no provider is called.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import { AppendOutcomeUnknown } from '../shared/event-store/errors.ts';
import { type ErrorCode, JSON_TYPE, reject } from '../shared/http/errors.ts';
import { PAYMENT_ID_FORM, parsePaymentId } from '../shared/http/payment-id.ts';
import type {} from '../shared/http/server/app.ts';
import { unresolvedOperations } from '../shared/payment/state.ts';
import type { ReadModelsReader } from '../shared/read-models/port.ts';
import { textsHoldCard } from '../shared/runtime/card-numbers.ts';
import { type ChangeKind, changePayment, identityOf } from './change-payment.ts';
import { createPayment } from './create-payment.ts';
import type { CommandDeps, Principal } from './deps.ts';
import type { LoadedPayment } from './payment-log.ts';
import { type ParsedChange, parseCapture, parseRefund } from './request/change-request.ts';
import { parseIdempotencyKey } from './request/idempotency-key.ts';
import { BODY_NOT_JSON } from './request/invalid.ts';
import { parseJson } from './request/json.ts';
import { parseCreate } from './request/payment-request.ts';
import {
  type Budget,
  BudgetSpent,
  startBudget,
  type Waiting,
  withinBudget,
} from './request-budget.ts';
import { type CommandResponse, tryLater, unknownOutcome } from './responses.ts';

export type CommandApi = {
  /** Token, scope and rate limit, checked before the body is read (shared/http/auth/authorize.ts). */
  authorize: onRequestHookHandler;
  deps: CommandDeps;
  readModels: Pick<ReadModelsReader, 'waitForRevision'>;
  requestBudgetMs: number;
  /** The requests that wait; a stop ends their waits before their connections are cut. */
  waiting: Waiting;
  /** Called once for each command, with its time in seconds. */
  onCommand(command: string, outcome: CommandResponse['outcome'], seconds: number): void;
};

/** How long an answer waits for the read models; a GET folds the stream where that was not enough. */
const READ_MODELS_WAIT_MS = 500;

type ChangeRoute = { kind: ChangeKind; badId: ErrorCode; parse(value: unknown): ParsedChange };

const readNothing = (): ParsedChange => ({ ok: true, request: { amount: undefined }, texts: [] });

const CHANGES: ChangeRoute[] = [
  { kind: 'capture', badId: 'INVALID_REQUEST', parse: parseCapture },
  // A void ignores its body, whatever it is (gaps §3).
  { kind: 'void', badId: 'INVALID_PAYMENT_ID', parse: readNothing },
  { kind: 'refund', badId: 'INVALID_REQUEST', parse: parseRefund },
];

const bodyOf = (request: FastifyRequest): Buffer =>
  Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);

const principalOf = (request: FastifyRequest): Principal => {
  if (request.principal === undefined) throw new Error('a route without its guard');
  const { merchantId, actor } = request.principal;
  return { merchantId, actor, requestId: request.id };
};

/** Registers the command routes on an app that has been built (shared/http/server/app.ts). */
export const registerCommandApi = (app: FastifyInstance, api: CommandApi): void => {
  const onRequest = api.authorize;
  app.post('/api/v1/payments', { onRequest }, async (request, reply) => {
    const budget = startBudget(api.requestBudgetMs);
    const keyed = parseIdempotencyKey(request.raw.rawHeaders);
    if (!keyed.ok) return reject(reply, 'INVALID_REQUEST', keyed.details);
    const json = parseJson(bodyOf(request));
    if (!json.ok) return reject(reply, 'INVALID_REQUEST', [BODY_NOT_JSON]);
    const parsed = parseCreate(json.value, keyed.key);
    if (!parsed.ok) return reject(reply, 'INVALID_REQUEST', parsed.details);
    const principal = principalOf(request);
    return run(api, reply, {
      command: 'create',
      budget,
      task: createPayment(api.deps, principal, parsed.request, keyed.key, budget),
      // Creates under one key wait for one another and for nothing else.
      repeatsRunning: () => keyed.key !== undefined,
    });
  });

  for (const route of CHANGES) {
    app.post<{ Params: { paymentId: string } }>(
      `/api/v1/payments/:paymentId/${route.kind}`,
      { onRequest },
      (request, reply) => change(api, route, request, reply),
    );
  }
};

const change = async (
  api: CommandApi,
  { kind, badId, parse }: ChangeRoute,
  request: FastifyRequest<{ Params: { paymentId: string } }>,
  reply: FastifyReply,
): Promise<FastifyReply> => {
  const budget = startBudget(api.requestBudgetMs);
  const principal = principalOf(request);
  const paymentId = parsePaymentId(request.params.paymentId);
  if (paymentId === undefined) return reject(reply, badId, [PAYMENT_ID_FORM]);
  const keyed = parseIdempotencyKey(request.raw.rawHeaders);
  if (!keyed.ok) return reject(reply, 'INVALID_REQUEST', keyed.details);
  const json =
    kind === 'void' ? { ok: true as const, value: undefined } : parseJson(bodyOf(request));
  if (!json.ok) return reject(reply, 'INVALID_REQUEST', [BODY_NOT_JSON]);
  const parsed = parse(json.value);
  if (!parsed.ok) return reject(reply, 'INVALID_REQUEST', parsed.details);
  const payment = await owned(api, principal, paymentId, reply);
  if (payment === undefined) return reply;
  request.paymentId = paymentId;
  const texts = keyed.key === undefined ? parsed.texts : [...parsed.texts, keyed.key];
  // seeded bug: card-in-change
  if (textsHoldCard(texts, payment.bin, payment.last4)) {
    return reject(reply, 'INVALID_REQUEST', ['the request must not hold the card number']);
  }
  const requested = { kind, paymentId, ...parsed.request };
  return run(api, reply, {
    command: kind,
    budget,
    task: changePayment(api.deps, principal, requested, keyed.key, budget),
    repeatsRunning: () => isRunning(api, principal, requested, keyed.key),
  });
};

/** The caller's payment; another merchant's does not exist for it, in the same words. */
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

/** The command's answer, or why there is none yet. What else it throws, shared/http/server/app.ts answers. */
const responseOf = async (
  { task, budget, repeatsRunning }: Running,
  waiting: Waiting,
): Promise<CommandResponse> => {
  try {
    return await withinBudget(task, budget, waiting);
  } catch (error) {
    // The append and the budget end at one time: whichever is told first, it means the same.
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
