/**
 * The simulator's known numbers (gaps §13): it decides by them, and the command line prints them.
 */
import type { FailureCode } from '../shared/payment/payment-events.ts';

/** Beyond a plain yes or no. The ledger keeps some of these words, so they are never renamed. */
export type CardBehaviour =
  | 'NOT_REACHABLE'
  | 'TIMES_OUT'
  | 'ANSWER_LOST'
  | 'CAPTURE_DECLINED'
  | 'REFUND_DECLINED'
  | LaterBehaviour
  | 'SLOW';

const LATER = [
  'AUTHORIZATION_EXPIRES',
  'REFUND_FAILS',
  'REFUNDED_ELSEWHERE',
  'DISPUTED',
  'DISPUTE_WON',
  'DISPUTE_LOST',
] as const;

export type LaterBehaviour = (typeof LATER)[number];

export const LATER_BEHAVIOURS: ReadonlySet<CardBehaviour> = new Set(LATER);

export type TestCard = {
  /** Digits alone. */
  number: string;
  /** The simulator's token for it (gaps §14). */
  token?: string;
  /** For people. */
  outcome: string;
  /** The decline to expect; of a capture or refund where the outcome says so. */
  failureCode?: FailureCode;
  behaviour?: CardBehaviour;
};

/** How long an operation with the slow card is at work. */
export const SLOW_CARD_MS = 2000;

/** Every other number that passes the Luhn check is approved. */
export const TEST_CARDS: readonly TestCard[] = [
  { number: '4242424242424242', token: 'tok_visa', outcome: 'approved' },
  { number: '4111111111111111', outcome: 'approved' },
  { number: '5555555555554444', token: 'tok_mastercard', outcome: 'approved' },
  { number: '378282246310005', token: 'tok_amex', outcome: 'approved' },
  { number: '4242424242424241', outcome: 'declined', failureCode: 'INVALID_CARD_NUMBER' },
  {
    number: '4000000000000002',
    token: 'tok_declined',
    outcome: 'declined',
    failureCode: 'CARD_DECLINED',
  },
  {
    number: '4000000000009995',
    token: 'tok_insufficient_funds',
    outcome: 'declined',
    failureCode: 'INSUFFICIENT_FUNDS',
  },
  {
    number: '4000000000009987',
    token: 'tok_lost_card',
    outcome: 'declined',
    failureCode: 'LOST_CARD',
  },
  {
    number: '4000000000009979',
    token: 'tok_stolen_card',
    outcome: 'declined',
    failureCode: 'STOLEN_CARD',
  },
  {
    number: '4000000000000069',
    token: 'tok_expired_card',
    outcome: 'declined',
    failureCode: 'EXPIRED_CARD',
  },
  {
    number: '4000000000000127',
    token: 'tok_incorrect_cvv',
    outcome: 'declined',
    failureCode: 'INCORRECT_CVV',
  },
  {
    number: '4000000000000119',
    token: 'tok_processing_error',
    outcome: 'declined',
    failureCode: 'PROCESSING_ERROR',
  },
  {
    number: '4000000000004210',
    token: 'tok_unreachable',
    outcome: 'provider not reachable, nothing charged',
    behaviour: 'NOT_REACHABLE',
  },
  {
    number: '4000000000004228',
    token: 'tok_never_carried_out',
    outcome: 'times out before it acts; found as nothing later',
    behaviour: 'TIMES_OUT',
  },
  {
    number: '4000000000004236',
    token: 'tok_answer_lost',
    outcome: 'acts, then its answer is lost; found as approved later',
    behaviour: 'ANSWER_LOST',
  },
  {
    number: '4000000000004244',
    token: 'tok_capture_declined',
    outcome: 'approved, capture declined',
    failureCode: 'PROCESSING_ERROR',
    behaviour: 'CAPTURE_DECLINED',
  },
  {
    number: '4000000000004251',
    token: 'tok_refund_declined',
    outcome: 'approved, refund declined',
    failureCode: 'TRANSACTION_NOT_PERMITTED',
    behaviour: 'REFUND_DECLINED',
  },
  {
    number: '4000000000004269',
    token: 'tok_slow',
    outcome: 'approved after 2 s',
    behaviour: 'SLOW',
  },
  {
    number: '4000000000004277',
    token: 'tok_authorization_expires',
    outcome: 'approved; the authorization runs out at once',
    behaviour: 'AUTHORIZATION_EXPIRES',
  },
  {
    number: '4000000000004285',
    token: 'tok_refund_fails',
    outcome: 'approved; each refund is approved, and bounces a moment later',
    behaviour: 'REFUND_FAILS',
  },
  {
    number: '4000000000004293',
    token: 'tok_refunded_elsewhere',
    outcome: 'approved; once captured, 1.00 of it is refunded elsewhere',
    behaviour: 'REFUNDED_ELSEWHERE',
  },
  {
    number: '4000000000004301',
    token: 'tok_disputed',
    outcome: 'approved; once captured, it is disputed',
    behaviour: 'DISPUTED',
  },
  {
    number: '4000000000004319',
    token: 'tok_dispute_won',
    outcome: 'approved; once captured, it is disputed, and the merchant wins',
    behaviour: 'DISPUTE_WON',
  },
  {
    number: '4000000000004327',
    token: 'tok_dispute_lost',
    outcome: 'approved; once captured, it is disputed, and the merchant loses',
    behaviour: 'DISPUTE_LOST',
  },
];
