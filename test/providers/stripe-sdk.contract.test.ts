/**
 * Stripe's own library as a witness, for tests alone: each table names all states that its types know, so
 * that an upgrade which brings a new one does not compile before the driver's meaning of it is written here.
 */
import { describe, expect, test } from '@jest/globals';
import Stripe from 'stripe';
import type { OperationQuestion } from '../../providers/port.ts';
import { failureCodeOf } from '../../providers/stripe/failure-codes.ts';
import { disputeResults } from '../../providers/stripe/later-results.ts';
import {
  isExpired,
  isReleased,
  readFollowUp,
  readOpened,
  readRefund,
  refundDeclinedBy,
  wasCharged,
} from '../../providers/stripe/read.ts';
import { listEnds } from '../../providers/stripe/requests.ts';
import { paymentIntent, refund } from '../../providers/stripe/shapes.ts';
import { minor } from '../../shared/payment/transitions.ts';
import { STRIPE_API_VERSION_DEFAULT } from '../../shared/runtime/settings/table.ts';

/** Its unions end in any other text, as a warning that more may come. */
type Named<T> = T extends string ? (string extends T ? never : T) : never;

const question: OperationQuestion = {
  operationId: 'op_1',
  paymentId: 'pay_1',
  merchantId: 'm_1',
  amount: 2000,
  currency: 'USD',
  kind: 'AUTHORIZE',
  requestedAt: '2026-01-01T00:00:00.000Z',
};
const intentWith = (parts: object) =>
  paymentIntent.parse({
    object: 'payment_intent',
    id: 'pi_1',
    amount: 2000,
    amount_received: 2000,
    capture_method: 'manual',
    currency: 'usd',
    created: 1_790_000_000,
    status: 'requires_capture',
    latest_charge: { status: 'succeeded' },
    metadata: { operationId: 'op_1', captureOperationId: 'op_1' },
    ...parts,
  });

test('the requested version of the API is the one that its types describe', () => {
  expect(STRIPE_API_VERSION_DEFAULT).toBe(Stripe.API_VERSION);
});

test('the events that end an authorization are events of its types', () => {
  const types = [
    'payment_intent.succeeded',
    'payment_intent.canceled',
  ] satisfies Stripe.Event.Type[];
  const { params } = listEnds(0)();
  expect([params['types[0]'], params['types[1]']]).toEqual(types);
});

/** What a PaymentIntent without an error says of its sale or authorization, its capture and its void. */
const INTENTS = {
  requires_payment_method: ['NOT_FOUND', 'NOT_FOUND', 'NOT_FOUND', 'NOT_FOUND'],
  requires_confirmation: ['NOT_FOUND', 'NOT_FOUND', 'NOT_FOUND', 'NOT_FOUND'],
  requires_action: ['NOT_FOUND', 'NOT_FOUND', 'NOT_FOUND', 'NOT_FOUND'],
  processing: ['UNKNOWN', 'UNKNOWN', 'UNKNOWN', 'UNKNOWN'],
  requires_capture: ['UNKNOWN', 'APPROVED', 'NOT_FOUND', 'NOT_FOUND'],
  succeeded: ['APPROVED', 'APPROVED', 'APPROVED', 'IMPOSSIBLE'],
  canceled: ['APPROVED', 'APPROVED', 'IMPOSSIBLE', 'APPROVED'],
} satisfies Record<Named<Stripe.PaymentIntent.Status>, string[]>;

test.each(Object.entries(INTENTS))('a PaymentIntent that is %s', (status, said) => {
  const intent = intentWith({ status });
  expect([
    readOpened(intent, { ...question, kind: 'SALE' }).outcome,
    readOpened(intent, question).outcome,
    readFollowUp(intent, { ...question, kind: 'CAPTURE' }).outcome,
    readFollowUp(intent, { ...question, kind: 'VOID' }).outcome,
  ]).toEqual(said);
});

/** Who released a hold: Stripe itself, or a void, here or in the Dashboard. Of invoices there are none here. */
const CANCELED = {
  automatic: 'expired',
  expired: 'expired',
  abandoned: 'released',
  duplicate: 'released',
  fraudulent: 'released',
  requested_by_customer: 'released',
  failed_invoice: 'released',
  void_invoice: 'released',
} satisfies Record<Named<Stripe.PaymentIntent.CancellationReason>, string>;

test.each(Object.entries(CANCELED))('a hold canceled as %s is %s', (cancellation_reason, said) => {
  const intent = intentWith({ status: 'canceled', cancellation_reason });
  const isOver = said === 'expired';
  expect([isExpired(intent), isReleased(intent)]).toEqual([isOver, !isOver]);
});

const CHARGED = {
  succeeded: true,
  pending: false,
  failed: false,
} satisfies Record<Named<Stripe.Charge.Status>, boolean>;

test.each(Object.entries(CHARGED))('a charge that is %s', (status, said) => {
  expect(wasCharged(intentWith({ latest_charge: { status } }))).toBe(said);
});

const DISPUTES = {
  needs_response: 'OPEN',
  under_review: 'OPEN',
  won: 'WON',
  lost: 'LOST',
  appeal_needs_response: 'LOST',
  appeal_under_review: 'LOST',
  warning_needs_response: undefined,
  warning_under_review: undefined,
  warning_closed: undefined,
  prevented: undefined,
} satisfies Record<Named<Stripe.Dispute.Status>, string | undefined>;

test.each(Object.entries(DISPUTES))('a dispute that is %s is %s', (status, said) => {
  const made = { object: 'dispute', id: 'du_1', amount: minor(700), reason: 'fraudulent' } as const;
  const [result] = disputeResults({ ...made, currency: 'usd', status });
  expect(result?.status).toBe(said);
});

describe('a refund, whose states its types leave to the documentation', () => {
  const made = (parts: Partial<Pick<Stripe.Refund, 'status' | 'failure_reason'>>) =>
    refund.parse({
      object: 'refund',
      id: 're_1',
      amount: 2000,
      currency: 'usd',
      created: 1_790_000_000,
      payment_intent: 'pi_1',
      metadata: { operationId: 'op_1' },
      ...parts,
    });

  test.each([
    ['pending', 'APPROVED'],
    ['succeeded', 'APPROVED'],
    ['failed', 'DECLINED'],
    ['canceled', 'DECLINED'],
    ['requires_action', 'UNKNOWN'],
  ])('that is %s is %s', (status, said) => {
    expect(readRefund(made({ status }), { ...question, kind: 'REFUND' }, 'pi_1').outcome).toBe(
      said,
    );
  });

  test.each([
    ['insufficient_funds', 'PROCESSING_ERROR'],
    ['lost_or_stolen_card', 'LOST_CARD'],
    ['expired_or_canceled_card', 'EXPIRED_CARD'],
    ['declined', 'CARD_DECLINED'],
    ['charge_for_pending_refund_disputed', 'TRANSACTION_NOT_PERMITTED'],
    ['merchant_request', 'TRANSACTION_NOT_PERMITTED'],
    ['unknown', 'UNKNOWN_DECLINE'],
  ])('that failed for %s is %s: the shortage of the merchant is none of the shopper', (...row) => {
    const [failure_reason, said] = row;
    expect(refundDeclinedBy(made({ failure_reason })).failureCode).toBe(said);
  });
});

test.each([
  ['payment_intent_action_required', 'AUTHENTICATION_REQUIRED'],
  ['mobile_device_authentication_required', 'AUTHENTICATION_REQUIRED'],
  ['invalid_pin', 'CARD_DECLINED'],
  ['incorrect_postal_code', 'CARD_DECLINED'],
  ['refer_to_customer', 'CARD_DECLINED'],
  ['expired_payment_method', 'EXPIRED_CARD'],
])('the code %s, which its documentation has since this version, is %s', (code, said) => {
  expect(failureCodeOf(code)).toBe(said);
});
