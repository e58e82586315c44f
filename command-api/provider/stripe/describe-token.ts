/** Which card a PaymentMethod of Stripe (`pm_…`) stands for. */
import type { CardBrand } from '../../../shared/payment/card.ts';
import type { TokenDescription } from '../port.ts';
import { type StripeCall, undecided } from './call.ts';
import { unknown } from './read.ts';
import { getPaymentMethod } from './requests.ts';
import { paymentMethod } from './shapes.ts';

const TOKEN = /^pm_[A-Za-z0-9_]{1,252}$/;

const BRANDS: Readonly<Record<string, CardBrand>> = {
  visa: 'VISA',
  mastercard: 'MASTERCARD',
  amex: 'AMEX',
  discover: 'DISCOVER',
  diners: 'DINERS',
  jcb: 'JCB',
  unionpay: 'UNIONPAY',
};

/** Reads a PaymentMethod: NOT_FOUND for one that Stripe does not know, or that is no card. */
export const describeToken = async (call: StripeCall, token: string): Promise<TokenDescription> => {
  if (!TOKEN.test(token)) return { outcome: 'NOT_FOUND' };
  const response = await call.send(getPaymentMethod(token));
  if ('sent' in response) return undecided(response);
  if (response.status === 404 || response.status === 400) return { outcome: 'NOT_FOUND' };
  if (response.status !== 200) return undecided(response);
  const read = paymentMethod.safeParse(response.body);
  if (!read.success) return unknown('malformed');
  const { card } = read.data;
  if (card?.last4 == null || card.exp_month == null || card.exp_year == null)
    return { outcome: 'NOT_FOUND' };
  const { iin, brand, last4, exp_month, exp_year } = card;
  return {
    outcome: 'DESCRIBED',
    last4,
    expiryMonth: String(exp_month).padStart(2, '0'),
    expiryYear: String(exp_year),
    brand: BRANDS[brand ?? ''],
    ...(iin != null && /^[0-9]{6}([0-9]{2})?$/.test(iin) && { bin: iin }),
  };
};
