/** The card numbers that the simulator decides by (gaps §13); `payments cards` prints them. */
import type { FailureCode } from '../../shared/payment/fields.ts';

const LATER = [
  'AUTHORIZATION_EXPIRES',
  'REFUND_FAILS',
  'REFUNDED_ELSEWHERE',
  'CAPTURED_ELSEWHERE',
  'VOIDED_ELSEWHERE',
  'DISPUTED',
  'DISPUTE_WON',
  'DISPUTE_LOST',
] as const;

const AT_ONCE = ['NOT_REACHABLE', 'TIMES_OUT', 'ANSWER_LOST', 'AUTHENTICATE', 'SLOW'] as const;
const DECLINES = ['CAPTURE_DECLINED', 'REFUND_DECLINED'] as const;

/** Beyond a plain yes or no. The ledger keeps some of these words, so they are never renamed. */
export type CardBehaviour = (typeof AT_ONCE | typeof DECLINES | typeof LATER)[number];

export const LATER_BEHAVIOURS: ReadonlySet<CardBehaviour> = new Set(LATER);
/** Kept in the ledger. Any other word would say more about the card than must be kept. */
export const KEPT_BEHAVIOURS: ReadonlySet<CardBehaviour> = new Set([...DECLINES, ...LATER]);

type TestCard = {
  number: string;
  token?: string;
  outcome: string;
  /** The decline to expect; of a capture or refund where the outcome says so. */
  failureCode?: FailureCode;
  behaviour?: CardBehaviour;
};

export const SLOW_CARD_MS = 2000;

const approved = (number: string, token?: string): TestCard => {
  return { number, ...(token && { token }), outcome: 'approved' };
};
const declined = (number: string, token: string, failureCode: FailureCode): TestCard => {
  return { number, token, outcome: 'declined', failureCode };
};
/** Their numbers end with these four digits. */
const acting = (
  last4: string,
  behaviour: CardBehaviour,
  outcome: string,
  more?: Pick<TestCard, 'token' | 'failureCode'>,
): TestCard => {
  const token = `tok_${behaviour.toLowerCase()}`;
  return { number: `400000000000${last4}`, token, outcome, behaviour, ...more };
};
const DISPUTED = 'approved; once captured, it is disputed';

/** Every other number that passes the Luhn check is approved. */
export const TEST_CARDS: readonly TestCard[] = [
  approved('4242424242424242', 'tok_visa'),
  approved('4111111111111111'),
  approved('5555555555554444', 'tok_mastercard'),
  approved('378282246310005', 'tok_amex'),
  { number: '4242424242424241', outcome: 'declined', failureCode: 'INVALID_CARD_NUMBER' },
  declined('4000000000000002', 'tok_declined', 'CARD_DECLINED'),
  declined('4000000000009995', 'tok_insufficient_funds', 'INSUFFICIENT_FUNDS'),
  declined('4000000000009987', 'tok_lost_card', 'LOST_CARD'),
  declined('4000000000009979', 'tok_stolen_card', 'STOLEN_CARD'),
  declined('4000000000000069', 'tok_expired_card', 'EXPIRED_CARD'),
  declined('4000000000000127', 'tok_incorrect_cvv', 'INCORRECT_CVV'),
  declined('4000000000000119', 'tok_processing_error', 'PROCESSING_ERROR'),
  acting('4210', 'NOT_REACHABLE', 'provider not reachable, nothing charged', {
    token: 'tok_unreachable',
  }),
  acting('4228', 'TIMES_OUT', 'times out before it acts; found as nothing later', {
    token: 'tok_never_carried_out',
  }),
  acting('4236', 'ANSWER_LOST', 'acts, then its answer is lost; found as approved later'),
  acting('4244', 'CAPTURE_DECLINED', 'approved, capture declined', {
    failureCode: 'PROCESSING_ERROR',
  }),
  acting('4251', 'REFUND_DECLINED', 'approved, refund declined', {
    failureCode: 'TRANSACTION_NOT_PERMITTED',
  }),
  acting('4269', 'SLOW', 'approved after 2 s'),
  acting('3220', 'AUTHENTICATE', 'needs the shopper; declined where not asked to', {
    failureCode: 'AUTHENTICATION_REQUIRED',
  }),
  acting('4277', 'AUTHORIZATION_EXPIRES', 'approved; the authorization runs out at once'),
  acting('4285', 'REFUND_FAILS', 'approved; each refund is approved, and bounces a moment later'),
  acting('4293', 'REFUNDED_ELSEWHERE', 'approved; once captured, 1.00 of it is refunded elsewhere'),
  acting('4301', 'DISPUTED', DISPUTED),
  acting('4319', 'DISPUTE_WON', `${DISPUTED}, and the merchant wins`),
  acting('4327', 'DISPUTE_LOST', `${DISPUTED}, and the merchant loses`),
  acting(
    '4335',
    'CAPTURED_ELSEWHERE',
    'approved; 1.00 of the authorization is captured elsewhere at once',
  ),
  acting('4343', 'VOIDED_ELSEWHERE', 'approved; it is canceled elsewhere at once'),
];
