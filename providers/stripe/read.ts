/** An error's text is never passed on: it can hold a card's digits. */
import { z } from 'zod';
import {
  type Approved,
  AT_WORK,
  type Declined,
  type LookedUp,
  MISMATCH,
  type NotFound,
  type NotSent,
  type OperationQuestion,
  type Unknown,
  unknown,
} from '../port.ts';
import { cleanCode, type SentCard } from '../transport.ts';
import type { StripeResponse } from './client.ts';
import { failureCodeOf, refundFailureOf, stripeAdviceOf } from './failure-codes.ts';
import { ABANDONED } from './requests.ts';
import { intentId, type PaymentIntent, paymentIntent, type Refund } from './shapes.ts';

/** It can never be carried out, as the object is now. */
type Impossible = { outcome: 'IMPOSSIBLE' };
export type Reading = LookedUp | Impossible;

export const NOT_FOUND: NotFound = { outcome: 'NOT_FOUND' };
const IMPOSSIBLE: Impossible = { outcome: 'IMPOSSIBLE' };
export const mismatch = unknown(MISMATCH);

type Codes = Omit<NonNullable<StripeResponse['error']>, 'payment_intent'>;

export const declinedBy = (codes: Codes, card?: SentCard): Declined => {
  const { code, decline_code, advice_code } = codes;
  const own = decline_code ?? code ?? '';
  return {
    outcome: 'DECLINED',
    failureCode: failureCodeOf(own) ?? failureCodeOf(code ?? '') ?? 'UNKNOWN_DECLINE',
    providerFailureCode: cleanCode(own, card),
    advice: stripeAdviceOf(advice_code ?? ''),
    networkDeclineCode: codes.network_decline_code,
    networkAdviceCode: codes.network_advice_code,
  };
};

export const refundDeclinedBy = ({ failure_reason }: Pick<Refund, 'failure_reason'>): Declined => {
  const reason = failure_reason ?? 'refund_failed';
  const failureCode = refundFailureOf(reason);
  return { outcome: 'DECLINED', failureCode, providerFailureCode: cleanCode(reason) };
};

/** What a 200 holds; undefined where it is no such object. */
export const objectOf = <T>(response: StripeResponse, shape: z.ZodType<T>): T | undefined =>
  response.status === 200 ? shape.safeParse(response.body).data : undefined;
export const intentOf = (response: StripeResponse): PaymentIntent | undefined =>
  objectOf(response, paymentIntent);

export const intentReference = (reference: unknown): string | undefined =>
  intentId.safeParse(reference).data;

export const isKeyTaken = ({ status, error }: StripeResponse): boolean =>
  status === 400 && error?.type === 'idempotency_error';

/** Decides nothing: the payment may have been made in an account that its merchant had before. */
export const MISSING = unknown('missing');
export const isMissing = ({ status, error }: StripeResponse): boolean =>
  status === 404 && error !== undefined;

/** The key (401), a permission or our address (403), the rate limit (429): no fault of a card. */
export const rejectionOf = ({ status, error }: StripeResponse) => {
  if (status === 401) return 'unauthorized';
  if (status === 403) return 'forbidden';
  return status === 429 && error?.code === 'rate_limit' ? 'rate_limited' : undefined;
};

export const notSent = (response: StripeResponse): NotSent => {
  // Never connected: only this counts for the breaker.
  if (response.lost?.sent === false) return { outcome: 'NOT_SENT', reason: 'unreachable' };
  const reason = rejectionOf(response);
  return { outcome: 'NOT_SENT', byProvider: true, ...(reason && { reason }) };
};
export const NOT_SENT: NotSent = { outcome: 'NOT_SENT', byProvider: true };
export const MET_FENCE: NotSent = { ...NOT_SENT, reason: 'fenced' };

/** For Stripe's support: its ids of the requests that failed, else of the last one. */
export const requestIdsOf = (responses: readonly StripeResponse[]) => {
  const whole = responses.filter(({ lost }) => lost === undefined);
  const failed = whole.filter(({ status }) => status !== 200);
  const shown = failed.length > 0 ? failed : whole.slice(-1);
  return shown.flatMap(({ headers }) => cleanCode(String(headers['request-id'] ?? '')) ?? []);
};

export const undecided = (response: StripeResponse): Unknown => {
  const { lost, status } = response;
  const reason = lost?.reason ?? rejectionOf(response);
  return unknown(reason ?? (status === 200 ? 'malformed' : 'status'));
};

/** Ends a call of the port as UNKNOWN: a list that was not read, or not whole, decides nothing. */
export class Undecided extends Error {
  readonly outcome: Unknown;
  constructor(outcome: Unknown, why = outcome.reason) {
    super(`the provider's ledger: ${why}`);
    this.outcome = outcome;
  }
}

/** Throws what is none of Stripe's doing. */
export const unknownBy = (error: unknown): Unknown => {
  if (error instanceof Undecided) return error.outcome;
  if (error instanceof z.ZodError) return unknown('malformed');
  throw error;
};

const isIn = (currency: string, question: OperationQuestion): boolean =>
  currency.toUpperCase() === question.currency;

/** The issuer approved once: true also after the hold was released again. */
export const wasCharged = ({ latest_charge: charge }: PaymentIntent): boolean =>
  typeof charge === 'object' && charge !== null && charge.status === 'succeeded';

const BY_ITSELF: readonly unknown[] = ['automatic', 'expired'];

/** Only a hold that the issuer had given, and that Stripe itself released, ran out. */
export const isExpired = (intent: PaymentIntent): boolean =>
  intent.status === 'canceled' &&
  wasCharged(intent) &&
  BY_ITSELF.includes(intent.cancellation_reason);

/** A hold that our void, our fence or the Dashboard canceled. */
export const isReleased = (intent: PaymentIntent): boolean =>
  intent.status === 'canceled' && wasCharged(intent) && !isExpired(intent);

/** Under no operation of ours: made in the Dashboard. */
export const isElsewhere = ({ metadata }: Pick<Refund, 'metadata'>): boolean =>
  metadata?.operationId === undefined;

/** By our fence of the create, which is named before; a version before this one named none. */
export const isFenced = ({ cancellation_reason, metadata }: PaymentIntent): boolean => {
  const { operationId, fencedOperationId = operationId } = metadata ?? {};
  return cancellation_reason === ABANDONED && fencedOperationId === operationId;
};

/** With a charge it was authorized, then released; if by our fence, no merchant heard of an approval. */
const readCanceledCreate = (intent: PaymentIntent, approved: Approved): Reading => {
  // A charge that was not expanded may have succeeded.
  if (typeof intent.latest_charge === 'string') return unknown('malformed');
  if (wasCharged(intent) && !isFenced(intent)) return approved;
  const { last_payment_error: error } = intent;
  // Left after its decline.
  return error == null ? IMPOSSIBLE : declinedBy(error);
};

const expiryOf = ({ latest_charge: charge }: PaymentIntent) => {
  const details = typeof charge === 'string' ? undefined : charge?.payment_method_details;
  if (details === undefined) return undefined;
  return { authorizationExpiresAt: new Date(details.card.capture_before * 1000).toISOString() };
};

export const readOpened = (intent: PaymentIntent, question: OperationQuestion): Reading => {
  const isOurs =
    intent.metadata?.operationId === question.operationId &&
    intent.amount === question.amount &&
    isIn(intent.currency, question);
  if (!isOurs) return mismatch;
  const approved: Approved = { outcome: 'APPROVED', providerReference: intent.id };
  switch (intent.status) {
    case 'succeeded':
      return approved;
    case 'requires_capture':
      return question.kind === 'AUTHORIZE' ? { ...approved, ...expiryOf(intent) } : mismatch;
    case 'canceled':
      return readCanceledCreate(intent, approved);
    case 'requires_payment_method':
      return intent.last_payment_error == null ? NOT_FOUND : declinedBy(intent.last_payment_error);
    case 'requires_action':
      return intent.next_action
        ? { outcome: 'ACTION_REQUIRED', url: intent.next_action.redirect_to_url.url }
        : NOT_FOUND;
    case 'requires_confirmation':
      return NOT_FOUND;
    default:
      return unknown(intent.status === 'processing' ? AT_WORK : 'status');
  }
};

const readCapture = (intent: PaymentIntent, question: OperationQuestion): Reading => {
  if (intent.status === 'canceled') return IMPOSSIBLE;
  if (intent.status !== 'succeeded') return stillPossible(intent);
  if (intent.metadata?.captureOperationId !== question.operationId) return IMPOSSIBLE;
  const isWhole = intent.amount_received === question.amount;
  return isWhole ? { outcome: 'APPROVED', providerReference: intent.id } : mismatch;
};

const stillPossible = ({ status }: PaymentIntent): Reading =>
  status === 'processing' ? unknown(AT_WORK) : NOT_FOUND;

const readVoid = (intent: PaymentIntent, question: OperationQuestion): Reading => {
  if (intent.amount !== question.amount) return mismatch;
  if (intent.status === 'canceled') return { outcome: 'APPROVED', providerReference: intent.id };
  return intent.status === 'succeeded' ? IMPOSSIBLE : stillPossible(intent);
};

/** Of the PaymentIntent that the question names. */
export const readFollowUp = (intent: PaymentIntent, question: OperationQuestion): Reading => {
  if (!isIn(intent.currency, question)) return mismatch;
  return question.kind === 'CAPTURE' ? readCapture(intent, question) : readVoid(intent, question);
};

/** A cancel in the Dashboard made it void, but not Stripe's own, nor another void of ours. */
export const readFound = (intent: PaymentIntent, question: OperationQuestion): Reading => {
  const reading = readFollowUp(intent, question);
  if (question.kind !== 'VOID' || reading.outcome !== 'APPROVED') return reading;
  // Our cancel has another reason, so this void was not carried out.
  if (isExpired(intent)) return IMPOSSIBLE;
  const { voidOperationId: name = question.operationId } = intent.metadata ?? {};
  // The name of an earlier void may have come late, over that of this one: its key tells.
  return name === question.operationId ? reading : NOT_FOUND;
};

/** Stripe calls it `pending` until the card's bank has taken it; it can fail later. */
export const isMade = ({ status }: Pick<Refund, 'status'>): boolean =>
  ['succeeded', 'pending'].includes(status ?? '');
export const hasFailed = ({ status }: Pick<Refund, 'status'>): boolean =>
  ['failed', 'canceled'].includes(status ?? '');

export const readRefund = (
  made: Refund,
  question: OperationQuestion,
  reference: string,
): Approved | Declined | Unknown => {
  const isOurs =
    made.metadata?.operationId === question.operationId &&
    made.payment_intent === reference &&
    made.amount === question.amount &&
    isIn(made.currency, question);
  if (!isOurs) return mismatch;
  if (isMade(made)) return { outcome: 'APPROVED', providerReference: made.id };
  if (hasFailed(made)) return refundDeclinedBy(made);
  return unknown(made.status === 'requires_action' ? AT_WORK : 'status');
};
