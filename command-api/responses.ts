/** Made from the events alone, so that a repeat gets the same bytes (gaps §8). */
import type { FastifyReply } from 'fastify';
import type { Bodies } from '../personal-data/opener.ts';
import { KeysUnavailable } from '../personal-data/port.ts';
import { AppendOutcomeUnknown } from '../shared/event-store/errors.ts';
import {
  type ErrorCode,
  errorBody,
  JSON_TYPE,
  type PaymentOutcome,
  RETRY_LATER,
  statusOf,
  UNAVAILABLE,
} from '../shared/http/errors.ts';
import { KEY_REUSED } from '../shared/http/idempotency.ts';
import {
  type Budget,
  BudgetSpent,
  type Reach,
  type Reached,
  withinBudget,
} from '../shared/http/request-budget.ts';
import type {} from '../shared/http/server/app.ts';
import { NOT_ALLOWED } from '../shared/payment/decide.ts';
import { foldReadModel } from '../shared/payment/fold.ts';
import { failureBodyOf, withAddress } from '../shared/payment/response.ts';
import { isFree, type Operation, type PaymentReadModel } from '../shared/payment/state.ts';
import type { ReadModelsReader } from '../shared/read-models/port.ts';
import type { Metrics } from '../shared/runtime/metrics.ts';
import type { LoadedPayment } from './payment-log.ts';

export type CommandResponse = {
  status: number;
  /** A payment is opened as it is sent. */
  body: string | PaymentReadModel;
  headers?: Record<string, string>;
  seen?: { paymentId: string; revision: number };
  /** Of a 503; left out where nothing was begun. */
  paymentOutcome?: PaymentOutcome;
  outcome:
    | 'approved'
    | 'declined'
    | 'refused'
    | 'action_required'
    | 'unknown'
    | 'not_sent'
    | 'unavailable';
};

const errorResponse = (code: ErrorCode, details: string[]) => ({
  status: statusOf(code),
  body: errorBody(code, details, new Date().toISOString()),
});

export const rejection = (code: ErrorCode, details: string[]): CommandResponse => ({
  ...errorResponse(code, details),
  outcome: 'refused',
});

export const keyReused = (): CommandResponse => rejection('IDEMPOTENCY_KEY_REUSED', [KEY_REUSED]);

export const tryLater = (
  code: 'PROVIDER_UNAVAILABLE' | 'SERVICE_UNAVAILABLE' | 'IDEMPOTENCY_IN_PROGRESS',
  detail: string,
  headers: Record<string, string> = RETRY_LATER,
): CommandResponse => ({ ...errorResponse(code, [detail]), headers, outcome: 'unavailable' });

export const unknownOn = (paymentId: string, detail: string): CommandResponse => ({
  ...errorResponse('PROVIDER_UNAVAILABLE', [`paymentId ${paymentId}`, detail]),
  headers: { ...RETRY_LATER, location: `/api/v1/payments/${paymentId}` },
  paymentOutcome: 'UNKNOWN',
  outcome: 'unknown',
});

/** Nothing is guessed (gaps §7). */
export const unknownOutcome = (paymentId: string): CommandResponse =>
  unknownOn(
    paymentId,
    'the outcome at the provider is not known yet; it is looked up and recorded on the payment',
  );

const neverCarriedOut = ({ kind }: Operation, paymentId: string): CommandResponse => ({
  ...unknownOn(
    paymentId,
    kind === 'create'
      ? 'the provider did not carry it out: nothing was charged'
      : `the provider did not carry out the ${kind}: nothing was changed`,
  ),
  paymentOutcome: 'NOT_CHARGED',
  outcome: 'not_sent',
});

/** The call would have begun too late for other processes (gaps §7): the provider was never asked. */
export const storedLate = (response: CommandResponse, paymentId: string): CommandResponse => {
  const why = 'the event store was slow, and the provider was not asked: nothing was carried out';
  return { ...response, ...errorResponse('SERVICE_UNAVAILABLE', [`paymentId ${paymentId}`, why]) };
};

const readModelAt = (payment: LoadedPayment, revision: number): PaymentReadModel => {
  if (payment.state.revision === revision) return payment.state;
  const readModel = foldReadModel(payment.events.slice(0, revision + 1));
  if (readModel === undefined) throw new Error('a payment without events');
  // What was erased since is erased in it, too.
  return { ...readModel, personal: payment.state.personal };
};

export const approved = (readModel: PaymentReadModel): CommandResponse => ({
  status: 200,
  body: readModel,
  headers: { etag: `"${readModel.revision}"` },
  outcome: 'approved',
});

export const responseTo = (payment: LoadedPayment, operation: Operation): CommandResponse => {
  const { paymentId } = payment.state;
  const last = payment.events.length - 1;
  const { outcome, revision = last } = operation.ended ?? {};
  const seen = { paymentId, revision };
  if (outcome === undefined) return { ...unknownOutcome(paymentId), seen };
  if (isFree(operation)) return { ...neverCarriedOut(operation, paymentId), seen };
  const readModel = readModelAt(payment, revision);
  return {
    ...(outcome === 'APPROVED' ? approved(readModel) : declined(readModel, operation)),
    seen,
  };
};

/** 202 while the provider waits for the shopper at `url`, which is stored nowhere (gaps §21). */
export const actionRequired = (
  payment: LoadedPayment,
  operation: Operation,
  url: string,
): CommandResponse => {
  // Another process may have recorded its outcome meanwhile.
  if (operation.ended !== undefined) return responseTo(payment, operation);
  const { paymentId, revision } = payment.state;
  return {
    status: 202,
    body: withAddress(payment.state, url),
    headers: { etag: `"${revision}"`, location: `/api/v1/payments/${paymentId}` },
    seen: { paymentId, revision },
    outcome: 'action_required',
  };
};

const declined = (readModel: PaymentReadModel, { kind }: Operation): CommandResponse => {
  if (kind === 'create') {
    const body = JSON.stringify(failureBodyOf(readModel));
    return { status: 402, body, outcome: 'declined' };
  }
  const failed = readModel.transactions.at(-1);
  const details = [`the provider declined the ${kind}`];
  if (failed?.failure !== undefined) {
    const { failureCode, providerFailureCode } = failed.failure;
    details.push(`failureCode ${failureCode}`);
    if (providerFailureCode !== undefined)
      details.push(`providerFailureCode ${providerFailureCode}`);
  }
  const body = errorBody(NOT_ALLOWED[kind], details, readModel.updatedAt);
  return { status: 422, body, outcome: 'declined' };
};

export const replayed = (response: CommandResponse): CommandResponse => ({
  ...response,
  headers: { ...response.headers, 'idempotent-replayed': 'true' },
});

export type RespondDeps = {
  bodies: Pick<Bodies, 'shown'>;
  readModels: Pick<ReadModelsReader, 'waitForRevision'>;
  /** A stop ends what requests wait for before their connections are cut. */
  stopping: AbortSignal;
  metrics: Pick<Metrics, 'commands' | 'commandSeconds'>;
};

/** A GET folds the stream where that was too short. */
const READ_MODELS_WAIT_MS = 500;

/** Begun by an earlier request with the same key, and without an outcome yet. */
export type EarlierOperation = {
  paymentId: string;
  mayRun: boolean;
};

type Commanded = {
  command: string;
  budget: Budget;
  /** Goes on to its end without the request. */
  run(reach: Reach): Promise<CommandResponse>;
  earlier(): EarlierOperation | undefined;
};

/** Once the read models show it, or the budget is spent. Throws what the command throws. */
export const respondInBudget = async (
  api: RespondDeps,
  reply: FastifyReply,
  commanded: Commanded,
): Promise<FastifyReply> => {
  const { command, budget } = commanded;
  const { request } = reply;
  const startedAt = performance.now();
  const response = await responseOf(commanded, api.stopping, reply);
  if (response.status === UNAVAILABLE)
    request.paymentOutcome = response.paymentOutcome ?? request.paymentOutcome;
  // It becomes a 503 where the wait for the read models fails.
  else request.paymentOutcome = 'UNKNOWN';
  if (response.seen !== undefined) {
    const { paymentId, revision } = response.seen;
    request.paymentId = paymentId;
    await api.readModels.waitForRevision(
      paymentId,
      revision,
      Math.min(READ_MODELS_WAIT_MS, budget.leftMs()),
    );
  }
  api.metrics.commands.inc({ command, outcome: response.outcome });
  api.metrics.commandSeconds.observe({ command }, (performance.now() - startedAt) / 1000);
  const { status, headers = {}, body } = response;
  const text = typeof body === 'string' ? body : await api.bodies.shown(body);
  return reply.code(status).headers(headers).type(JSON_TYPE).send(text);
};

/** No provider call follows an intent that may not be stored (operate.ts). */
const storedOrNot = (): CommandResponse => ({
  ...tryLater(
    'SERVICE_UNAVAILABLE',
    'it is not known whether anything was stored; nothing was sent to the provider',
  ),
  paymentOutcome: 'UNKNOWN',
});

/** Without a key nothing may be stored (docs/privacy.md). */
const withoutKey = (): CommandResponse =>
  tryLater('SERVICE_UNAVAILABLE', 'no key seals its personal data; nothing was stored');

const outOfTurn = (earlier: EarlierOperation | undefined): CommandResponse => {
  if (earlier === undefined)
    return tryLater('SERVICE_UNAVAILABLE', 'the turn of this request did not come in time');
  return earlier.mayRun
    ? tryLater('IDEMPOTENCY_IN_PROGRESS', 'the first request with this key still runs')
    : unknownOutcome(earlier.paymentId);
};

const responseOf = async (
  { run, budget, earlier }: Commanded,
  stopping: AbortSignal,
  { request }: FastifyReply,
): Promise<CommandResponse> => {
  let reached = undefined as Reached;
  const running = run((now) => {
    reached = now;
  });
  try {
    return await withinBudget(running, budget, stopping);
  } catch (error) {
    // The append and the budget end at one time: whichever comes first, it means the same.
    if (error instanceof AppendOutcomeUnknown || reached === 'appending') return storedOrNot();
    if (error instanceof KeysUnavailable) return withoutKey();
    // What a command throws it throws before its own intent is stored.
    if (!(error instanceof BudgetSpent) && reached !== undefined)
      request.paymentOutcome = 'UNKNOWN';
    if (!(error instanceof BudgetSpent)) throw error;
    return reached === undefined ? outOfTurn(earlier()) : unknownOutcome(reached.begunOn);
  }
};
