/** The scenarios of `payments trigger` and `payments seed`: lists of requests. */

/** One request of a scenario. */
export type Step = {
  /** What the request does, in a word or two. */
  name: string;
  method: 'GET' | 'POST';
  /** Behind `/api/v1/payments`; `{id}` is the payment that the first step made. */
  path: string;
  body?: Record<string, unknown>;
  /** The HTTP status to expect; with another one the scenario ends. */
  expected: number;
  /** Send the request again until the payment is no longer PENDING. */
  untilResolved?: boolean;
};

/** A scenario of the help: what it does, and its requests for an amount in minor units. */
export type Scenario = {
  summary: string;
  /** The smallest amount, in minor units, that the scenario works with. */
  amountMin: number;
  steps(amount: number): Step[];
};

const APPROVED = '4242424242424242';
const DECLINED = '4000000000000002';
const RESPONSE_LOST = '4000000000004236';

const create = (name: string, amount: number, captureNow: boolean, number = APPROVED): Step => ({
  name,
  method: 'POST',
  path: '',
  expected: 200,
  body: {
    amount,
    currency: 'USD',
    captureNow,
    paymentMethod: {
      type: 'CARD',
      card: {
        number,
        holderName: 'Ada Lovelace',
        cvv: '123',
        expiryMonth: '12',
        expiryYear: '2030',
      },
    },
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

const threeFifths = (amount: number): number => Math.floor((amount * 3) / 5);

const capturedInPart = (amount: number): Step[] => [
  create('authorize', amount, false),
  change('capture', { captureAmount: threeFifths(amount) }),
];

/** By name, in the order of the help. */
export const SCENARIOS = {
  authorize: {
    summary: 'reserves the amount',
    amountMin: 1,
    steps: (amount) => [create('authorize', amount, false)],
  },
  sale: {
    summary: 'authorizes and captures in one step',
    amountMin: 1,
    steps: (amount) => [create('sale', amount, true)],
  },
  'partial-capture': {
    summary: 'authorizes and captures three fifths; the rest is released',
    amountMin: 2,
    steps: capturedInPart,
  },
  refund: {
    summary: 'authorizes and captures in one step, then refunds all of it',
    amountMin: 1,
    steps: (amount) => [create('sale', amount, true), change('refund')],
  },
  decline: {
    summary: 'a card that the provider declines: 402',
    amountMin: 1,
    steps: (amount) => [{ ...create('declined', amount, false, DECLINED), expected: 402 }],
  },
  unknown: {
    summary:
      'the provider acts and its response is lost: 503, then the outcome that recovery found',
    amountMin: 1,
    steps: (amount) => [
      { ...create('response lost', amount, false, RESPONSE_LOST), expected: 503 },
      { ...READ, untilResolved: true },
    ],
  },
  'full-story': {
    summary: 'authorizes, captures in part, refunds in part, refunds the rest, reads',
    amountMin: 4,
    steps: (amount) => [
      ...capturedInPart(amount),
      change('refund', { refundAmount: threeFifths(threeFifths(amount)) }),
      change('refund'),
      READ,
    ],
  },
} as const satisfies Record<string, Scenario>;

/** The name of a scenario, as it is typed. */
export type ScenarioName = keyof typeof SCENARIOS;
/** All names, in the order of the help. */
export const SCENARIO_NAMES = Object.keys(SCENARIOS) as ScenarioName[];
