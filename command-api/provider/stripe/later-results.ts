/** What became of a payment later (gaps §15), read from Stripe's objects as they are now. */

import type { LaterResult } from '../../../shared/payment/outcome.ts';
import type { LaterResults, NotFound, PaymentQuestion, Unknown } from '../port.ts';
import { cleanCode } from '../transport.ts';
import type { StripeCall } from './client.ts';
import { disputesOf, intentReference, isMissing, refundsOf } from './look-up.ts';
import {
  hasFailed,
  intentOf,
  isElsewhere,
  isExpired,
  isMade,
  isReleased,
  mismatch,
  refundDeclinedBy,
  undecided,
} from './read.ts';
import { getIntent } from './requests.ts';
import type { Dispute, PaymentIntent, Refund } from './shapes.ts';

/** Seven days with the card schemes, and the hours by which Stripe may cancel late. */
export const AUTHORIZATION_MS_MAX = (7 * 24 + 12) * 3_600_000;
const found = (...results: LaterResult[]): LaterResults => ({ outcome: 'FOUND', results });

const failedLater = (operationId: string, made: Refund): LaterResult => {
  const { failureCode, providerFailureCode } = refundDeclinedBy(made);
  return { kind: 'REFUND_FAILED', operationId, failureCode, providerFailureCode };
};

/** What bounced comes first, because it can be refunded again. */
const refundResults = (
  refunds: readonly Refund[],
  { refunds: ours, observed }: PaymentQuestion,
): LaterResult[] => {
  const operationOf = ({ id, metadata }: Refund): string | undefined =>
    metadata?.operationId === undefined
      ? observed.find(({ refundId }) => refundId === id)?.operationId
      : ours.find(({ operationId }) => operationId === metadata.operationId)?.operationId;
  const bounced = refunds.filter(hasFailed).flatMap((made) => {
    const operationId = operationOf(made);
    return operationId === undefined ? [] : [failedLater(operationId, made)];
  });
  const elsewhere = refunds
    .filter((made) => isElsewhere(made) && isMade(made))
    .map(({ id, amount }): LaterResult => ({ kind: 'REFUND_OBSERVED', refundId: id, amount }));
  return [...bounced, ...elsewhere.reverse()];
};

/** An inquiry (`warning_…`) and a prevented dispute take no money: they are none here. */
const DISPUTE_STATUS: Readonly<Record<string, 'OPEN' | 'WON' | 'LOST'>> = {
  needs_response: 'OPEN',
  under_review: 'OPEN',
  won: 'WON',
  lost: 'LOST',
  // The money is gone until the appeal is won.
  appeal_needs_response: 'LOST',
  appeal_under_review: 'LOST',
};

type DisputeResult = Extract<LaterResult, { kind: 'DISPUTE' }>;

export const disputeResults = ({
  id,
  amount,
  reason,
  status,
}: Omit<Dispute, 'payment_intent'>): DisputeResult[] => {
  const shown = Object.hasOwn(DISPUTE_STATUS, status) ? DISPUTE_STATUS[status] : undefined;
  if (shown === undefined) return [];
  const why = cleanCode(reason) ?? 'general';
  return [{ kind: 'DISPUTE', disputeId: id, amount, reason: why, status: shown }];
};

const captureResults = ({
  id: reference,
  capture_method,
  metadata,
  amount,
  amount_received,
}: PaymentIntent): LaterResult[] =>
  capture_method === 'manual' && metadata?.captureOperationId === undefined
    ? [{ kind: 'CAPTURE_OBSERVED', reference, amount: amount_received ?? amount }]
    : [];

const resultsOfCaptured = async (
  call: StripeCall,
  question: PaymentQuestion,
  intent: PaymentIntent,
): Promise<LaterResults | Unknown> => {
  const { latest_charge: latest } = intent;
  const charge = typeof latest === 'object' ? latest : undefined;
  // What bounced is not in the amount, but was known here before.
  const isUnrefunded =
    charge?.amount_refunded === 0 && question.refunds.length + question.observed.length === 0;
  const refunds = isUnrefunded ? [] : await refundsOf(call, intent.id);
  if ('outcome' in refunds) return refunds;
  // A key that may not read disputes is good for a payment that Stripe says has none.
  const disputes = charge?.disputed === false ? [] : await disputesOf(call, intent.id);
  if ('outcome' in disputes) return disputes;
  const isOfIntent = (one: Refund | Dispute): boolean =>
    one.payment_intent === intent.id && one.currency.toUpperCase() === question.currency;
  if (![...refunds, ...disputes].every(isOfIntent)) return mismatch;
  return found(
    ...captureResults(intent),
    ...refundResults(refunds, question),
    ...disputes.flatMap(disputeResults),
  );
};

export const laterResults = async (
  call: StripeCall,
  question: PaymentQuestion,
): Promise<LaterResults | Unknown> => {
  const reference = intentReference(question.authorizationReference);
  if (reference === undefined) return found();
  const response = await call.send(getIntent(reference));
  const intent = intentOf(response);
  if (intent === undefined) return undecided(response);
  const isOurs =
    intent.id === reference &&
    intent.metadata?.operationId === question.authorizationId &&
    intent.amount === question.amount;
  if (!isOurs) return mismatch;
  if (isExpired(intent)) return found({ kind: 'AUTHORIZATION_EXPIRED' });
  if (isReleased(intent)) return found({ kind: 'VOID_OBSERVED', reference });
  return intent.status === 'succeeded' ? resultsOfCaptured(call, question, intent) : found();
};

export const paymentOf = async (
  call: StripeCall,
  reference: string,
): Promise<{ outcome: 'FOUND'; paymentId: string } | NotFound | Unknown> => {
  const known = intentReference(reference);
  if (known === undefined) return { outcome: 'NOT_FOUND' };
  const response = await call.send(getIntent(known));
  if (isMissing(response)) return { outcome: 'NOT_FOUND' };
  const intent = intentOf(response);
  if (intent === undefined) return undecided(response);
  const paymentId = intent.metadata?.paymentId;
  return paymentId === undefined ? { outcome: 'NOT_FOUND' } : { outcome: 'FOUND', paymentId };
};
