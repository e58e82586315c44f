/**
 * What Stripe's objects and errors say about an operation. Whatever is not exactly about this very
 * operation is Unknown. An error's text never goes on: it can hold the last digits of a card.
 */
import {
  type Approved,
  AT_WORK,
  type Declined,
  MISMATCH,
  type NotFound,
  type OperationQuestion,
  type Unknown,
} from '../port.ts';
import { cleanCode } from '../provider-code.ts';
import type { StripeResponse } from './client.ts';
import { failureCodeOf } from './failure-codes.ts';
import { ABANDONED } from './requests.ts';
import {
  errorBody,
  type PaymentIntent,
  paymentIntent,
  type Refund,
  refund,
  type StripeError,
} from './shapes.ts';

/** It was not carried out, and as the object is now it never can be. */
export type Impossible = { outcome: 'IMPOSSIBLE' };
/** What an object says of an operation. */
export type Reading = Approved | Declined | NotFound | Unknown | Impossible;

export const unknown = (reason: string): Unknown => ({ outcome: 'UNKNOWN', reason });
export const NOT_FOUND: NotFound = { outcome: 'NOT_FOUND' };
const IMPOSSIBLE: Impossible = { outcome: 'IMPOSSIBLE' };
/** Stripe holds something else than what was asked about. */
export const mismatch = unknown(MISMATCH);

type Codes = Pick<StripeError, 'code' | 'decline_code'>;

/** A decline in our words; `number` is the card number that the call carried, if any. */
export const declinedBy = ({ code, decline_code }: Codes, number?: string): Declined => {
  const own = decline_code ?? code ?? '';
  return {
    outcome: 'DECLINED',
    failureCode: failureCodeOf(own) ?? failureCodeOf(code ?? '') ?? 'UNKNOWN_DECLINE',
    providerFailureCode: cleanCode(own, number),
  };
};

/** The error of a response with a status of 400 or above; undefined where it is none of Stripe's. */
export const errorOf = (response: StripeResponse): StripeError | undefined =>
  'sent' in response ? undefined : errorBody.safeParse(response.body).data?.error;

/** The PaymentIntent or the refund of a 200; undefined for everything else. */
export const intentOf = (response: StripeResponse): PaymentIntent | undefined =>
  'sent' in response || response.status !== 200
    ? undefined
    : paymentIntent.safeParse(response.body).data;
export const refundOf = (response: StripeResponse): Refund | undefined =>
  'sent' in response || response.status !== 200 ? undefined : refund.safeParse(response.body).data;

const isIn = (currency: string, question: OperationQuestion): boolean =>
  currency.toUpperCase() === question.currency;

/** Whether the issuer ever approved: true also after the hold was released again. */
export const wasCharged = ({ latest_charge: charge }: PaymentIntent): boolean =>
  typeof charge === 'object' && charge !== null && charge.status === 'succeeded';

/** Stripe's own words for a cancel that nobody asked for. */
const BY_ITSELF: readonly unknown[] = ['automatic', 'expired'];

/** Only a hold that the issuer had given, and that Stripe itself released, ran out. */
export const isExpired = (intent: PaymentIntent): boolean =>
  intent.status === 'canceled' &&
  wasCharged(intent) &&
  BY_ITSELF.includes(intent.cancellation_reason);

/** Under no operation of ours: it was made in the Dashboard, or is what a capture of part released. */
export const isElsewhere = ({ metadata }: Pick<Refund, 'metadata'>): boolean =>
  metadata?.operationId === undefined;

/**
 * What a capture of part released may stand among the refunds, under no operation of ours: it gave
 * nothing back that had been taken.
 */
export const isRelease = (
  made: Pick<Refund, 'metadata' | 'amount'>,
  { amount, amount_received: received }: Pick<PaymentIntent, 'amount' | 'amount_received'>,
): boolean =>
  isElsewhere(made) && received != null && received > 0 && made.amount === amount - received;

/**
 * A canceled intent with a charge was authorized and released later. Where our own fence released it
 * (`abandoned`), no merchant ever heard of an approval: it counts as never carried out.
 */
const readCanceledCreate = (intent: PaymentIntent, approved: Approved): Reading => {
  // A charge that was not expanded may have succeeded.
  if (typeof intent.latest_charge === 'string') return unknown('malformed');
  const isReleasedLater = wasCharged(intent) && intent.cancellation_reason !== ABANDONED;
  return isReleasedLater ? approved : IMPOSSIBLE;
};

/** What a PaymentIntent says of the AUTHORIZE or SALE that opened it. */
export const readCreate = (intent: PaymentIntent, question: OperationQuestion): Reading => {
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
      return question.kind === 'AUTHORIZE' ? approved : mismatch;
    case 'canceled':
      return readCanceledCreate(intent, approved);
    case 'requires_payment_method':
      return intent.last_payment_error == null ? NOT_FOUND : declinedBy(intent.last_payment_error);
    case 'requires_confirmation':
    case 'requires_action':
      return NOT_FOUND;
    default:
      return unknown(intent.status === 'processing' ? AT_WORK : 'status');
  }
};

const readCapture = (intent: PaymentIntent, question: OperationQuestion): Reading => {
  const isOurs = intent.metadata?.captureOperationId === question.operationId;
  switch (intent.status) {
    case 'succeeded':
      if (!isOurs) return IMPOSSIBLE;
      return intent.amount_received === question.amount
        ? { outcome: 'APPROVED', providerReference: intent.id }
        : mismatch;
    case 'canceled':
      return IMPOSSIBLE;
    default:
      return stillPossible(intent);
  }
};

const stillPossible = ({ status }: PaymentIntent): Reading =>
  status === 'processing' ? unknown(AT_WORK) : NOT_FOUND;

const readVoid = (intent: PaymentIntent, question: OperationQuestion): Reading => {
  if (intent.amount !== question.amount) return mismatch;
  if (intent.status === 'canceled') return { outcome: 'APPROVED', providerReference: intent.id };
  return intent.status === 'succeeded' ? IMPOSSIBLE : stillPossible(intent);
};

/** What the response to a capture or a void says of it: the PaymentIntent of its authorization. */
export const readChange = (
  intent: PaymentIntent,
  question: OperationQuestion,
  reference: string,
): Reading => {
  if (intent.id !== reference || !isIn(intent.currency, question)) return mismatch;
  return question.kind === 'CAPTURE' ? readCapture(intent, question) : readVoid(intent, question);
};

/**
 * What the PaymentIntent of an authorization, when it is looked at, says of a capture or a void of it.
 * Whoever canceled it in the Dashboard made it void, but not Stripe itself, nor another void of ours.
 */
export const readFound = (
  intent: PaymentIntent,
  question: OperationQuestion,
  reference: string,
): Reading => {
  const reading = readChange(intent, question, reference);
  if (question.kind !== 'VOID' || reading.outcome !== 'APPROVED') return reading;
  // A cancel of ours has a reason of its own, so this void was not carried out.
  if (isExpired(intent)) return IMPOSSIBLE;
  const { voidOperationId: name = question.operationId } = intent.metadata ?? {};
  // The name of an earlier void may have come late, over that of this one: its key tells.
  return name === question.operationId ? reading : NOT_FOUND;
};

/**
 * What a refund says of the operation that made it. Stripe calls it `pending` until the card's bank
 * has taken it; it can fail later, which is an event of its own.
 */
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
  switch (made.status) {
    case 'succeeded':
    case 'pending':
      return { outcome: 'APPROVED', providerReference: made.id };
    case 'failed':
    case 'canceled':
      return declinedBy({ code: made.failure_reason ?? 'refund_failed' });
    default:
      return unknown(made.status === 'requires_action' ? AT_WORK : 'status');
  }
};
