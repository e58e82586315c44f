/**
 * The simulated provider's known numbers (gaps §13), as data: the simulator decides by this
 * table, and the command line prints it.
 */
import type { FailureCode } from '../shared/payment/payment-events.ts';

/**
 * What the simulator does beyond a plain yes or no. The ledger keeps the word of an authorization
 * whose captures or refunds behave specially, so these are stored forms: never renamed.
 */
export type CardBehaviour =
  | 'NOT_REACHABLE'
  | 'TIMES_OUT'
  | 'ANSWER_LOST'
  | 'CAPTURE_DECLINED'
  | 'REFUND_DECLINED'
  | 'SLOW';

export type TestCard = {
  /** Digits alone. */
  number: string;
  /** In words, for people. */
  outcome: string;
  /** The decline to expect; of a capture or refund where the outcome says so. */
  failureCode?: FailureCode;
  behaviour?: CardBehaviour;
};

/** How long an operation with the slow card is at work, in milliseconds. */
export const SLOW_CARD_MS = 2000;

/** Every number that is no card below is approved when it passes the Luhn check. */
export const TEST_CARDS: readonly TestCard[] = [
  { number: '4242424242424242', outcome: 'approved' },
  { number: '4111111111111111', outcome: 'approved' },
  { number: '5555555555554444', outcome: 'approved' },
  { number: '378282246310005', outcome: 'approved' },
  { number: '4242424242424241', outcome: 'declined', failureCode: 'INVALID_CARD_NUMBER' },
  { number: '4000000000000002', outcome: 'declined', failureCode: 'CARD_DECLINED' },
  { number: '4000000000009995', outcome: 'declined', failureCode: 'INSUFFICIENT_FUNDS' },
  { number: '4000000000009987', outcome: 'declined', failureCode: 'LOST_CARD' },
  { number: '4000000000009979', outcome: 'declined', failureCode: 'STOLEN_CARD' },
  { number: '4000000000000069', outcome: 'declined', failureCode: 'EXPIRED_CARD' },
  { number: '4000000000000127', outcome: 'declined', failureCode: 'INCORRECT_CVV' },
  { number: '4000000000000119', outcome: 'declined', failureCode: 'PROCESSING_ERROR' },
  {
    number: '4000000000004210',
    outcome: 'provider not reachable, nothing charged',
    behaviour: 'NOT_REACHABLE',
  },
  {
    number: '4000000000004228',
    outcome: 'times out before it acts; found as nothing later',
    behaviour: 'TIMES_OUT',
  },
  {
    number: '4000000000004236',
    outcome: 'acts, then its answer is lost; found as approved later',
    behaviour: 'ANSWER_LOST',
  },
  {
    number: '4000000000004244',
    outcome: 'approved, capture declined',
    failureCode: 'PROCESSING_ERROR',
    behaviour: 'CAPTURE_DECLINED',
  },
  {
    number: '4000000000004251',
    outcome: 'approved, refund declined',
    failureCode: 'TRANSACTION_NOT_PERMITTED',
    behaviour: 'REFUND_DECLINED',
  },
  { number: '4000000000004269', outcome: 'approved after 2 s', behaviour: 'SLOW' },
];
