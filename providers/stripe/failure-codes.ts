/** Stripe's decline and error codes by our failure code. Any other is UNKNOWN_DECLINE. */
import type { FailureCode, FailureData } from '../../shared/payment/fields.ts';

const STRIPE_CODES: { readonly [Ours in FailureCode]?: string } = {
  CARD_DECLINED: `generic_decline card_declined call_issuer no_action_taken stop_payment_order
    revocation_of_authorization revocation_of_all_authorizations new_account_information_available
    pin_try_exceeded incorrect_pin invalid_pin incorrect_zip incorrect_postal_code
    refer_to_customer incorrect_address testmode_decline`,
  INSUFFICIENT_FUNDS: 'insufficient_funds',
  EXPIRED_CARD: 'expired_card expired_payment_method invalid_expiry_month invalid_expiry_year',
  INCORRECT_CVV: 'incorrect_cvc invalid_cvc',
  INVALID_CARD_NUMBER: 'incorrect_number invalid_number invalid_account',
  LOST_CARD: 'lost_card',
  STOLEN_CARD: 'stolen_card',
  PICKUP_CARD: 'pickup_card',
  DO_NOT_HONOR: 'do_not_honor do_not_try_again',
  SUSPECTED_FRAUD: `fraudulent merchant_blacklist highest_risk_level elevated_risk_level
    security_violation`,
  LIMIT_EXCEEDED: `card_velocity_exceeded withdrawal_count_limit_exceeded
    card_decline_rate_limit_exceeded amount_too_large amount_too_small invalid_amount
    charge_exceeds_source_limit charge_exceeds_transaction_limit`,
  CARD_NOT_SUPPORTED: 'card_not_supported currency_not_supported',
  TRANSACTION_NOT_PERMITTED: `transaction_not_allowed not_permitted service_not_allowed
    restricted_card charge_already_captured charge_already_refunded charge_disputed
    refund_disputed_payment charge_not_refundable charge_expired_for_capture
    capture_charge_authorization_expired payment_intent_unexpected_state`,
  AUTHENTICATION_REQUIRED: `authentication_required authentication_not_handled
    payment_intent_authentication_failure payment_intent_action_required
    mobile_device_authentication_required offline_pin_required online_or_offline_pin_required`,
  ISSUER_UNAVAILABLE: 'issuer_not_available try_again_later reenter_transaction',
  PROCESSING_ERROR: 'processing_error approve_with_id duplicate_transaction balance_insufficient',
};

const OURS = new Map(
  Object.entries(STRIPE_CODES).flatMap(([ours, codes]) =>
    codes.split(/\s+/).map((code): [string, FailureCode] => [code, ours as FailureCode]),
  ),
);

export const failureCodeOf = (code: string): FailureCode | undefined => OURS.get(code);

/** Why a refund failed; its `insufficient_funds` is the merchant's balance, not the shopper's. */
const REFUND_FAILURES = new Map<string, FailureCode>([
  ['lost_or_stolen_card', 'LOST_CARD'],
  ['expired_or_canceled_card', 'EXPIRED_CARD'],
  ['declined', 'CARD_DECLINED'],
  ['insufficient_funds', 'PROCESSING_ERROR'],
  ['charge_for_pending_refund_disputed', 'TRANSACTION_NOT_PERMITTED'],
  ['merchant_request', 'TRANSACTION_NOT_PERMITTED'],
]);

export const refundFailureOf = (reason: string): FailureCode =>
  REFUND_FAILURES.get(reason) ?? 'UNKNOWN_DECLINE';

const OF_CARD = /^(card|incorrect|invalid_expiry|amount_too)_/;

/** Of the card, the amount or the payment's state; all other codes of a 400 are our or the account's fault. */
export const isOfDecline = (code: string): boolean => OURS.has(code) || OF_CARD.test(code);

const ADVICE = new Map<string, FailureData['advice']>([
  ['confirm_card_data', 'CORRECT_DATA'],
  ['do_not_try_again', 'DO_NOT_RETRY'],
  ['try_again_later', 'RETRY_LATER'],
]);

export const stripeAdviceOf = (code: string): FailureData['advice'] => ADVICE.get(code);
