/**
 * The responses to commands, made from the events alone, so that a repeat gets the same bytes
 * (gaps §8). The response to an operation is the payment as it was at the operation's outcome.
 */
import { type ErrorCode, errorBody } from '../shared/http/errors.ts';
import {
  bodyOf,
  failureBodyOf,
  foldReadModel,
  type PaymentReadModel,
} from '../shared/payment/response.ts';
import type { Operation, OperationKind } from '../shared/payment/state.ts';
import type { LoadedPayment } from './payment-log.ts';

export type CommandResponse = {
  status: number;
  /** The JSON text of the body. */
  body: string;
  headers?: Record<string, string>;
  /** The payment it is about and the revision a reader has to find; absent when nothing is stored. */
  seen?: { paymentId: string; revision: number };
  /** One word for the metrics. */
  outcome: 'approved' | 'declined' | 'refused' | 'unknown' | 'not_sent' | 'unavailable';
};

const NOT_ALLOWED = {
  capture: 'CAPTURE_NOT_ALLOWED',
  void: 'VOID_NOT_ALLOWED',
  refund: 'REFUND_NOT_ALLOWED',
} as const satisfies Record<Exclude<OperationKind, 'create'>, ErrorCode>;

const STATUS = {
  PROVIDER_UNAVAILABLE: 503,
  SERVICE_UNAVAILABLE: 503,
  IDEMPOTENCY_IN_PROGRESS: 409,
} as const;

/** Seconds after which a client may send its request again. */
const RETRY_AFTER = '1';

/** A rejection that stored nothing. */
export const rejection = (
  status: number,
  code: ErrorCode,
  details: string[],
  at: string = new Date().toISOString(),
): CommandResponse => ({ status, body: errorBody(code, details, at), outcome: 'refused' });

/** The Idempotency-Key stands for another request already (gaps §8). */
export const keyReused = (): CommandResponse =>
  rejection(422, 'IDEMPOTENCY_KEY_REUSED', [
    'the Idempotency-Key was used for another request; use a new key',
  ]);

/** A rejection that a later attempt may not meet. */
export const tryLater = (
  code: keyof typeof STATUS,
  details: string[],
  headers: Record<string, string> = {},
): CommandResponse => ({
  status: STATUS[code],
  body: errorBody(code, details, new Date().toISOString()),
  headers: { 'retry-after': RETRY_AFTER, ...headers },
  outcome: code === 'PROVIDER_UNAVAILABLE' ? 'unknown' : 'unavailable',
});

const locationOf = (paymentId: string) => ({ location: `/api/v1/payments/${paymentId}` });

/** The intent is durable, its outcome is not known: nothing is guessed (gaps §7). */
export const unknownOutcome = (paymentId: string): CommandResponse =>
  tryLater(
    'PROVIDER_UNAVAILABLE',
    [
      `paymentId ${paymentId}`,
      'the outcome at the provider is not known yet; it is looked up and recorded on the payment',
    ],
    locationOf(paymentId),
  );

const neverCarriedOut = (operation: Operation, paymentId: string): CommandResponse => ({
  ...tryLater(
    'PROVIDER_UNAVAILABLE',
    [
      `paymentId ${paymentId}`,
      operation.kind === 'create'
        ? 'the provider did not carry it out: nothing was charged'
        : `the provider did not carry out the ${operation.kind}: nothing was changed`,
    ],
    locationOf(paymentId),
  ),
  outcome: 'not_sent',
});

const readModelAt = (payment: LoadedPayment, revision: number): PaymentReadModel => {
  if (payment.readModel.revision === revision) return payment.readModel;
  const readModel = foldReadModel(payment.events.slice(0, revision + 1));
  if (readModel === undefined) throw new Error('a payment without events');
  return readModel;
};

/** The response to an operation: its stored outcome, or that there is none yet. */
export const responseTo = (payment: LoadedPayment, operation: Operation): CommandResponse => {
  const { paymentId } = payment.state;
  const last = payment.events.length - 1;
  if (operation.ended === undefined) {
    return { ...unknownOutcome(paymentId), seen: { paymentId, revision: last } };
  }
  // seeded bug: replay-revision
  const { outcome, revision } = operation.ended;
  const seen = { paymentId, revision };
  if (outcome === 'NOT_SENT' || outcome === 'FENCED') {
    return { ...neverCarriedOut(operation, paymentId), seen };
  }
  const readModel = readModelAt(payment, revision);
  if (outcome === 'APPROVED') {
    const headers = { etag: `"${revision}"` };
    return { status: 200, body: bodyOf(readModel), headers, seen, outcome: 'approved' };
  }
  return { ...declined(readModel, operation), seen };
};

const declined = (readModel: PaymentReadModel, { kind }: Operation): CommandResponse => {
  if (kind === 'create') {
    const body = JSON.stringify(failureBodyOf(readModel));
    return { status: 402, body, outcome: 'declined' };
  }
  const failed = readModel.response.transactions.at(-1);
  const details = [`the provider declined the ${kind}`];
  if (failed?.failure !== undefined) {
    const { failureCode, providerFailureCode } = failed.failure;
    details.push(`failureCode ${failureCode}`);
    if (providerFailureCode !== undefined)
      details.push(`providerFailureCode ${providerFailureCode}`);
  }
  const body = errorBody(NOT_ALLOWED[kind], details, readModel.response.updatedAt);
  return { status: 422, body, outcome: 'declined' };
};

/** A stored outcome, given again (gaps §8). */
export const replayed = (response: CommandResponse): CommandResponse => ({
  ...response,
  // seeded bug: replay-header
  headers: { ...response.headers, 'idempotent-replayed': 'true' },
});

/** The operation as the payment knows it now. */
export const operationOf = (payment: LoadedPayment, operationId: string): Operation => {
  const found = payment.state.operations.find((one) => one.operationId === operationId);
  if (found === undefined)
    throw new Error(`payment ${payment.state.paymentId} has no operation ${operationId}`);
  return found;
};
