import { CARD_BRANDS } from '../../shared/payment/card.ts';
import type { TokenDescription } from '../port.ts';
import type { StripeCall, StripeResponse } from './client.ts';
import { objectOf, undecided } from './read.ts';
import { getToken, isConfirmationToken } from './requests.ts';
import { confirmationToken, paymentMethod } from './shapes.ts';

const TOKEN = /^(pm|ctoken)_[A-Za-z0-9_]{1,248}$/;

const methodIn = (token: string, response: StripeResponse) =>
  isConfirmationToken(token)
    ? objectOf(response, confirmationToken)?.payment_method_preview
    : objectOf(response, paymentMethod);

/** NOT_FOUND where Stripe knows no such PaymentMethod or ConfirmationToken, or it is no card. */
export const describeToken = async (call: StripeCall, token: string): Promise<TokenDescription> => {
  if (!TOKEN.test(token)) return { outcome: 'NOT_FOUND' };
  const response = await call.send(getToken(token));
  if ([400, 404].includes(response.status)) return { outcome: 'NOT_FOUND' };
  const method = methodIn(token, response);
  if (method === undefined) return undecided(response);
  const { card, customer } = method;
  if (card?.last4 == null || card.exp_month == null || card.exp_year == null)
    return { outcome: 'NOT_FOUND' };
  const { iin, brand, last4, exp_month, exp_year } = card;
  return {
    outcome: 'DESCRIBED',
    last4,
    expiryMonth: String(exp_month).padStart(2, '0'),
    expiryYear: String(exp_year),
    // Stripe's names are ours in lower case.
    brand: CARD_BRANDS.find((ours) => ours.toLowerCase() === brand),
    customer: customer ?? undefined,
    ...(iin != null && /^[0-9]{6}([0-9]{2})?$/.test(iin) && { bin: iin }),
  };
};

/** By a token instead of a test number no permission for raw cards is needed. */
const TOKENS: Readonly<Record<string, string>> = {
  '4242424242424242': 'pm_card_visa',
  '5555555555554444': 'pm_card_mastercard',
  '378282246310005': 'pm_card_amex',
  '6011111111111117': 'pm_card_discover',
  '3056930009020004': 'pm_card_diners',
  '3566002020360505': 'pm_card_jcb',
  '6200000000000005': 'pm_card_unionpay',
  '4000000000000002': 'pm_card_visa_chargeDeclined',
  '4000000000009995': 'pm_card_visa_chargeDeclinedInsufficientFunds',
  '4000000000009987': 'pm_card_visa_chargeDeclinedLostCard',
  '4000000000009979': 'pm_card_visa_chargeDeclinedStolenCard',
  '4000000000000069': 'pm_card_chargeDeclinedExpiredCard',
  '4000000000000127': 'pm_card_chargeDeclinedIncorrectCvc',
  '4000000000000119': 'pm_card_chargeDeclinedProcessingError',
  '4000002760003184': 'pm_card_authenticationRequired',
};

export const testTokenOf = (number: string): string | undefined =>
  Object.hasOwn(TOKENS, number) ? TOKENS[number] : undefined;
