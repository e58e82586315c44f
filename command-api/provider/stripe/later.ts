/**
 * What Stripe says of a payment later: that its authorization ran out. Refunds that fail or are made
 * in the Dashboard, and disputes, are not read.
 */
import type { LaterResults, PaymentQuestion, Unknown } from '../port.ts';
import { type StripeCall, undecided } from './call.ts';
import { intentReference } from './look-up.ts';
import { intentOf, unknown, wasCharged } from './read.ts';
import { getIntent } from './requests.ts';
import type { PaymentIntent } from './shapes.ts';

/** Seven days with the card schemes, and the hours by which Stripe may cancel late. */
export const AUTHORIZATION_MS_MAX = (7 * 24 + 12) * 3_600_000;
/** Stripe's own words for a cancel that nobody asked for. */
const BY_ITSELF: readonly unknown[] = ['automatic', 'expired'];

const NOTHING: LaterResults = { outcome: 'FOUND', results: [] };

/** Only a hold that the issuer had given, and that Stripe itself released, ran out. */
const isExpired = (intent: PaymentIntent): boolean =>
  intent.status === 'canceled' &&
  wasCharged(intent) &&
  // seeded bug: stripe-expired
  BY_ITSELF.includes(intent.cancellation_reason);

/** All that has become of a payment as far as it is read; without a kept reference nothing is. */
export const laterResults = async (
  call: StripeCall,
  question: PaymentQuestion,
): Promise<LaterResults | Unknown> => {
  const reference = intentReference(question.authorizationReference);
  if (reference === undefined) return NOTHING;
  const response = await call.send(getIntent(reference));
  const intent = intentOf(response);
  if (intent === undefined) return undecided(response);
  const isOurs =
    intent.id === reference &&
    intent.metadata?.operationId === question.authorizationId &&
    intent.amount === question.amount;
  if (!isOurs) return unknown('mismatch');
  return isExpired(intent)
    ? { outcome: 'FOUND', results: [{ kind: 'AUTHORIZATION_EXPIRED' }] }
    : NOTHING;
};
