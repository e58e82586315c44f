/** What Stripe's documented test numbers and test tokens do. */

export type StripeDecline = {
  code: string;
  decline_code?: string;
  advice_code?: string;
  network_decline_code?: string;
  network_advice_code?: string;
};

/** How a confirm with a card ends; undefined: it is approved. */
export type CardBehaviour = {
  brand: string;
  last4: string;
  declined?: StripeDecline;
  requiresAction?: true;
  /** A refund of it succeeds and fails later. */
  refundFails?: true;
  /** The payment is disputed once it is captured. */
  disputed?: true;
};

const declinedWith = (decline_code: string, advice: Partial<StripeDecline> = {}) => ({
  code: 'card_declined',
  decline_code,
  ...advice,
});

const visa = (last4: string, rest: Partial<CardBehaviour> = {}): CardBehaviour => ({
  brand: 'visa',
  last4,
  ...rest,
});

const BY_TOKEN: Readonly<Record<string, CardBehaviour>> = {
  pm_card_visa: visa('4242'),
  pm_card_mastercard: { brand: 'mastercard', last4: '4444' },
  pm_card_amex: { brand: 'amex', last4: '0005' },
  pm_card_visa_chargeDeclined: visa('0002', { declined: declinedWith('generic_decline') }),
  pm_card_visa_chargeDeclinedInsufficientFunds: visa('9995', {
    declined: declinedWith('insufficient_funds', {
      advice_code: 'try_again_later',
      network_decline_code: '51',
      network_advice_code: '02',
    }),
  }),
  pm_card_visa_chargeDeclinedLostCard: visa('9987', {
    declined: declinedWith('lost_card', { advice_code: 'do_not_try_again' }),
  }),
  pm_card_visa_chargeDeclinedStolenCard: visa('9979', { declined: declinedWith('stolen_card') }),
  pm_card_chargeDeclinedExpiredCard: visa('0069', { declined: { code: 'expired_card' } }),
  pm_card_chargeDeclinedIncorrectCvc: visa('0127', {
    declined: { code: 'incorrect_cvc', advice_code: 'confirm_card_data' },
  }),
  pm_card_chargeDeclinedProcessingError: visa('0119', {
    declined: {
      code: 'processing_error',
      advice_code: 'a_later_word',
      network_decline_code: 'too long',
    },
  }),
  pm_card_authenticationRequired: visa('3184', { requiresAction: true }),
  pm_card_createDispute: visa('0259', { disputed: true }),
  pm_card_refundFail: visa('5126', { refundFails: true }),
};

const BY_LAST4 = new Map(Object.values(BY_TOKEN).map((card) => [card.last4, card]));

/** The behaviour of a test token; undefined where Stripe has no such token. */
export const cardOfToken = (token: string): CardBehaviour | undefined =>
  Object.hasOwn(BY_TOKEN, token) ? BY_TOKEN[token] : undefined;

/** The behaviour of a number: its last four digits name it, as on Stripe's page of test cards. */
export const cardOfNumber = (number: string): CardBehaviour => {
  const last4 = number.slice(-4);
  return BY_LAST4.get(last4) ?? visa(last4);
};

/** Luhn, which Stripe checks before anything else. */
export const hasCheckDigit = (number: string): boolean => {
  const total = [...number].reverse().reduce((sum, digit, at) => {
    const value = Number(digit) * (at % 2 === 1 ? 2 : 1);
    return sum + (value > 9 ? value - 9 : value);
  }, 0);
  return /^[0-9]{12,19}$/.test(number) && total % 10 === 0;
};
