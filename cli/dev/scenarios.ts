/** The scenarios of `payments trigger` and `payments seed`: lists of requests. */
import { type CardBehaviour, TEST_CARDS } from '../../providers/simulator/test-cards.ts';
import type { PaymentResponse } from '../../shared/payment/fields.ts';

export type Step = {
  name: string;
  method: 'GET' | 'POST';
  /** Behind `/api/v1/payments`; `{id}`: the payment of the first step; `{page}`: the shopper's page. */
  path: string;
  body?: Record<string, unknown>;
  /** The HTTP status that must come; any other ends the scenario. */
  expected: number;
  until?: (payment: Partial<PaymentResponse>) => boolean;
};

/** Amounts in minor units. */
type Scenario = {
  summary: string;
  amountMin: number;
  /** Needs the simulator in the service's own process. */
  simulated?: true;
  steps(amount: number): Step[];
};

const DECLINED = '4000000000000002';
const ASKING = { authentication: { returnUrl: 'https://shop.example/back' } };
const CARD = { holderName: 'Ada Lovelace', cvv: '123', expiryMonth: '12', expiryYear: '2030' };

/** Of the first card that behaves so; without a behaviour, of one that is approved. */
const numberOf = (behaviour?: CardBehaviour) =>
  TEST_CARDS.find((one) => one.behaviour === behaviour)?.number;

const create = (
  name: string,
  amount: number,
  captureNow: boolean,
  behaviour?: CardBehaviour,
  more: object = {},
): Step => ({
  name,
  method: 'POST',
  path: '',
  expected: 200,
  body: {
    amount,
    currency: 'USD',
    captureNow,
    paymentMethod: { type: 'CARD', card: { number: numberOf(behaviour), ...CARD, ...more } },
  },
});

const change = (kind: 'capture' | 'void' | 'refund', body: Record<string, unknown> = {}): Step => ({
  name: kind,
  method: 'POST',
  path: `/{id}/${kind}`,
  body,
  expected: 200,
});

const READ: Step = { name: 'get', method: 'GET', path: '/{id}', expected: 200 };

const readUntil = (name: string, until: NonNullable<Step['until']>): Step => {
  return { ...READ, name, until };
};
const rejected = (step: Step): Step => ({ ...step, expected: 422 });

const disputed = (amount: number, card: CardBehaviour, status: string): Step[] => [
  create('sale', amount, true, card),
  readUntil('dispute', ({ disputes = [] }) => disputes.some((one) => one.status === status)),
];

const threeFifths = (amount: number): number => Math.floor((amount * 3) / 5);

const capturedInPart = (amount: number): Step[] => [
  create('authorize', amount, false),
  change('capture', { captureAmount: threeFifths(amount) }),
];

const scenario = (summary: string, steps: Scenario['steps'], amountMin = 1): Scenario => {
  return { summary, amountMin, steps };
};
const simulated = (summary: string, steps: Scenario['steps']): Scenario => {
  return { ...scenario(summary, steps), simulated: true };
};

export const SCENARIOS = {
  authorize: scenario('reserves the amount', (amount) => [create('authorize', amount, false)]),
  sale: scenario('authorizes and captures in one step', (amount) => [create('sale', amount, true)]),
  'partial-capture': scenario(
    'authorizes and captures three fifths; the rest is released',
    capturedInPart,
    2,
  ),
  refund: scenario('authorizes and captures in one step, then refunds all of it', (amount) => [
    create('sale', amount, true),
    change('refund'),
  ]),
  decline: scenario('a card that the provider declines: 402', (amount) => [
    { ...create('declined', amount, false, undefined, { number: DECLINED }), expected: 402 },
  ]),
  unknown: scenario(
    'the provider acts and its response is lost: 503, then the outcome that recovery found',
    (amount) => [
      { ...create('response lost', amount, false, 'ANSWER_LOST'), expected: 503 },
      readUntil('get', ({ status }) => status !== 'PENDING'),
    ],
  ),
  'full-story': scenario(
    'authorizes, captures in part, refunds in part, refunds the rest, reads',
    (amount) => [
      ...capturedInPart(amount),
      change('refund', { refundAmount: threeFifths(threeFifths(amount)) }),
      change('refund'),
      READ,
    ],
    4,
  ),
  authentication: simulated(
    'a card that needs the shopper: 202, the shopper authenticates, AUTHORIZED',
    (amount) => [
      { ...create('authorize', amount, false, 'AUTHENTICATE', ASKING), expected: 202 },
      { name: 'authenticate', method: 'POST', path: '{page}/authenticate', expected: 303 },
      readUntil('authorized', ({ status }) => status === 'AUTHORIZED'),
    ],
  ),
  'authorization-expired': simulated(
    'the authorization runs out: VOIDED, and it can be captured no more',
    (amount) => [
      create('authorize', amount, false, 'AUTHORIZATION_EXPIRES'),
      readUntil('expired', ({ status }) => status === 'VOIDED'),
      rejected(change('capture')),
    ],
  ),
  'refund-failed': simulated('a refund bounces after it was approved: CAPTURED again', (amount) => [
    create('sale', amount, true, 'REFUND_FAILS'),
    change('refund'),
    readUntil('bounced', ({ status }) => status === 'CAPTURED'),
  ]),
  'refund-observed': simulated(
    'a refund that was made elsewhere, 1.00 at most, is seen',
    (amount) => [
      create('sale', amount, true, 'REFUNDED_ELSEWHERE'),
      readUntil('observed', ({ refundedAmount = 0 }) => refundedAmount > 0),
    ],
  ),
  'capture-observed': simulated(
    'a capture that was made elsewhere, 1.00 at most, is seen: CAPTURED, and it can be voided no more',
    (amount) => [
      create('authorize', amount, false, 'CAPTURED_ELSEWHERE'),
      readUntil('observed', ({ status }) => status === 'CAPTURED'),
      rejected(change('void')),
    ],
  ),
  'void-observed': simulated(
    'a cancel that was made elsewhere is seen: VOIDED, and it can be captured no more',
    (amount) => [
      create('authorize', amount, false, 'VOIDED_ELSEWHERE'),
      readUntil('observed', ({ status }) => status === 'VOIDED'),
      rejected(change('capture')),
    ],
  ),
  dispute: simulated(
    'the cardholder disputes it: no refund while the dispute is open',
    (amount) => [...disputed(amount, 'DISPUTED', 'OPEN'), rejected(change('refund'))],
  ),
  'dispute-won': simulated('a dispute that the merchant wins, then a refund', (amount) => [
    ...disputed(amount, 'DISPUTE_WON', 'WON'),
    change('refund'),
  ]),
  'dispute-lost': simulated(
    'a dispute that the merchant loses: nothing is left to refund',
    (amount) => [...disputed(amount, 'DISPUTE_LOST', 'LOST'), rejected(change('refund'))],
  ),
};

export type ScenarioName = keyof typeof SCENARIOS;
export const SCENARIO_NAMES = Object.keys(SCENARIOS) as ScenarioName[];
