/** The body of a payment after each event, whole (gaps §4, §5, §6; interface, "Resources"). */
import { describe, expect, test } from '@jest/globals';
import type { PaymentEvent } from '../../shared/payment/events.ts';
import type {
  Failure,
  FailureCode,
  FailureData,
  PaymentResponse,
} from '../../shared/payment/fields.ts';
import { foldReadModel, project } from '../../shared/payment/fold.ts';
import {
  bodyOf,
  failureBodyOf,
  keptBodyOf,
  responseOf,
  takeApart,
  withAddress,
} from '../../shared/payment/response.ts';
import type { PaymentReadModel } from '../../shared/payment/state.ts';
import { minor } from '../../shared/payment/transitions.ts';
import { everyDetail } from '../support/every-detail.ts';
import {
  authenticationRequested,
  authorizationExpired,
  authorizationExpiring,
  authorized,
  CARD_KEPT,
  captureDeclined,
  captured,
  captureRequested,
  created,
  disputeClosed,
  disputed,
  failed,
  operationId,
  outcomeConfirmed,
  outcomeContradicted,
  placed,
  refundDeclined,
  refunded,
  refundRequested,
  SEALED,
  timeOf,
  voidDeclined,
  voided,
  voidRequested,
} from '../support/payment-events.ts';
import type { Plain } from '../support/plain.ts';

const readModelOf = (events: PaymentEvent[]): PaymentReadModel => {
  const readModel = foldReadModel(placed(events));
  if (readModel === undefined) throw new Error('a stream without events has no read model');
  return readModel;
};

/** As merchants see it. */
const responseIn = (events: PaymentEvent[]): PaymentResponse =>
  responseOf(readModelOf(events), HELD);

/** What the box of a payment holds. */
const HELD = { text: { holderName: 'Jane Doe' } };

const card = { ...CARD_KEPT, holderName: 'Jane Doe' };
const { last4: _, ...encryptedCard } = card;

/** The body right after PaymentCreated: all later bodies are told by what differs from it. */
const asCreated: Plain<PaymentResponse> = {
  paymentId: 'pay_1',
  merchantReference: 'order-1',
  amount: 2500,
  authorizedAmount: 0,
  capturedAmount: 0,
  refundedAmount: 0,
  refundableAmount: 0,
  currency: 'USD',
  status: 'PENDING',
  paymentMethod: { type: 'CARD', card, encryptedCard },
  captureNow: false,
  createdAt: timeOf(0),
  updatedAt: timeOf(0),
  transactions: [],
};

const ZERO = operationId(0);
const FIRST = operationId(1);
const SECOND = operationId(2);
const FAILURE = {
  failureCode: 'CARD_DECLINED',
  providerFailureCode: '05',
  advice: 'RETRY_LATER',
} as const;

const succeeded = { amount: 2500, result: 'SUCCEEDED' } as const;
const declined = { amount: 2500, result: 'FAILED', failure: FAILURE } as const;
const PREFIXES = { AUTH: 'AUTH', SALE: 'SALE', CAPTURE: 'CAPT', VOID: 'VOID', REFUND: 'REFN' };
/** The transaction of the n-th operation, which the event at that place ended. */
const listed = (type: keyof typeof PREFIXES, n: number, at: number, more: object = succeeded) =>
  ({
    ...{ id: `${PREFIXES[type]}_${operationId(n)}`, type },
    ...more,
    createdAt: timeOf(at),
  }) as PaymentResponse['transactions'][number];
const auth = listed('AUTH', 0, 1);
const taken = listed('CAPTURE', 1, 3);

const asAuthorized = [created(), authorized()];
const asCaptured = [...asAuthorized, captureRequested(), captured({ operationId: FIRST })];
const amounts = { authorizedAmount: 2500, capturedAmount: 2500 };

type Row = [title: string, events: PaymentEvent[], differs: Partial<Plain<PaymentResponse>>];

describe('gaps §5: the body after each event', () => {
  const rows: Row[] = [
    ['PaymentCreated: PENDING, the open attempt is not listed', [created()], {}],
    [
      'PaymentAuthorized: an AUTH',
      asAuthorized,
      { status: 'AUTHORIZED', authorizedAmount: 2500, transactions: [auth] },
    ],
    [
      'a sale: PaymentAuthorized and PaymentCaptured are one SALE (gaps §6)',
      [created({ captureNow: true }), authorized(), captured()],
      {
        ...amounts,
        captureNow: true,
        status: 'CAPTURED',
        refundableAmount: 2500,
        transactions: [listed('SALE', 0, 2)],
      },
    ],
    [
      'PaymentFailed of an authorization: a failed AUTH',
      [created(), failed()],
      { status: 'FAILED', transactions: [listed('AUTH', 0, 1, declined)] },
    ],
    [
      'PaymentFailed of a sale: a failed SALE',
      [created({ captureNow: true }), failed()],
      { captureNow: true, status: 'FAILED', transactions: [listed('SALE', 0, 1, declined)] },
    ],
    [
      'PaymentCaptureRequested: the status stays, nothing is listed',
      [...asAuthorized, captureRequested()],
      { status: 'AUTHORIZED', authorizedAmount: 2500, transactions: [auth] },
    ],
    [
      'PaymentCaptured: a CAPTURE',
      asCaptured,
      { ...amounts, status: 'CAPTURED', refundableAmount: 2500, transactions: [auth, taken] },
    ],
    [
      'a partial PaymentCaptured: amount and authorizedAmount stay, the release is no transaction',
      [
        ...asAuthorized,
        captureRequested({ amount: 2000 }),
        captured({ operationId: FIRST, amount: 2000, releasedAmount: 500 }),
      ],
      {
        status: 'CAPTURED',
        authorizedAmount: 2500,
        capturedAmount: 2000,
        refundableAmount: 2000,
        transactions: [auth, { ...taken, amount: 2000 }],
      },
    ],
    [
      'PaymentCaptureDeclined: a failed CAPTURE, still AUTHORIZED',
      [...asAuthorized, captureRequested({ amount: 2000 }), captureDeclined({ amount: 2000 })],
      {
        status: 'AUTHORIZED',
        authorizedAmount: 2500,
        transactions: [auth, { ...taken, amount: 2000, result: 'FAILED', failure: FAILURE }],
      },
    ],
    [
      'PaymentVoidRequested: nothing is listed',
      [...asAuthorized, voidRequested()],
      { status: 'AUTHORIZED', authorizedAmount: 2500, transactions: [auth] },
    ],
    [
      'PaymentVoided: a VOID with the authorized amount, which authorizedAmount keeps',
      [...asAuthorized, voidRequested(), voided()],
      { status: 'VOIDED', authorizedAmount: 2500, transactions: [auth, listed('VOID', 1, 3)] },
    ],
    [
      'PaymentVoidDeclined: a failed VOID, still AUTHORIZED',
      [...asAuthorized, voidRequested(), voidDeclined()],
      {
        status: 'AUTHORIZED',
        authorizedAmount: 2500,
        transactions: [auth, listed('VOID', 1, 3, declined)],
      },
    ],
    [
      'PaymentRefundRequested: reserved, not yet refunded (gaps §7)',
      [...asCaptured, refundRequested({ amount: 800 })],
      { ...amounts, status: 'CAPTURED', refundableAmount: 1700, transactions: [auth, taken] },
    ],
    [
      'PaymentRefunded in part: a REFUND, still CAPTURED',
      [...asCaptured, refundRequested({ amount: 800 }), refunded({ amount: 800 })],
      {
        ...amounts,
        status: 'CAPTURED',
        refundedAmount: 800,
        refundableAmount: 1700,
        transactions: [auth, taken, listed('REFUND', 2, 5, { ...succeeded, amount: 800 })],
      },
    ],
    [
      'PaymentRefunded of the whole captured amount: REFUNDED',
      [...asCaptured, refundRequested(), refunded()],
      {
        ...amounts,
        status: 'REFUNDED',
        refundedAmount: 2500,
        transactions: [auth, taken, listed('REFUND', 2, 5)],
      },
    ],
    [
      'PaymentRefundDeclined: a failed REFUND, its reservation is released',
      [...asCaptured, refundRequested(), refundDeclined()],
      {
        ...amounts,
        status: 'CAPTURED',
        refundableAmount: 2500,
        transactions: [auth, taken, listed('REFUND', 2, 5, declined)],
      },
    ],
  ];
  test.each(rows)('%s', (_title, events, differs) => {
    const updatedAt = timeOf(events.length - 1);
    const body = { ...asCreated, updatedAt, ...differs };
    expect(responseIn(events)).toEqual(body);
  });
});

test('gaps §5: refunds reach the captured amount of a partial capture in steps', () => {
  const third = operationId(3);
  const response = responseIn([
    ...asAuthorized,
    captureRequested({ amount: 2000 }),
    captured({ operationId: FIRST, amount: 2000, releasedAmount: 500 }),
    refundRequested({ amount: 800 }),
    refundRequested({ operationId: third, amount: 1200 }),
    refunded({ operationId: third, amount: 1200 }),
    refunded({ amount: 800 }),
  ]);
  expect(response).toMatchObject({ status: 'REFUNDED', refundedAmount: 2000, refundableAmount: 0 });
  expect(response.transactions.map(({ id }) => id)).toEqual([
    `AUTH_${ZERO}`,
    `CAPT_${FIRST}`,
    `REFN_${third}`,
    `REFN_${SECOND}`,
  ]);
});

test('gaps §15: a lost dispute and refunds above the capture together leave nothing to refund', () => {
  const part = { amount: 2000 };
  const events = [...asCaptured, refundRequested(part), refunded(part), disputed()];
  const lost = responseIn([...events, disputeClosed({ status: 'LOST' })]);
  expect(lost).toMatchObject({ refundedAmount: 2000, refundableAmount: 0 });
});

test('gaps §21: the next action is shown until the outcome, its address with the create alone', () => {
  const expiresAt = '2026-01-15T10:15:00.000Z';
  const waiting = [created(), authenticationRequested({ expiresAt })];
  expect(responseIn(waiting)).toMatchObject({
    nextAction: { type: 'REDIRECT', expiresAt },
    updatedAt: timeOf(1),
  });
  const { nextAction } = withAddress(readModelOf(waiting), 'https://bank.example/');
  expect(JSON.stringify(nextAction)).toMatch(/^{"type":"REDIRECT","url":"https:.*","expiresAt"/);
  expect(responseIn([...waiting, authorized()]).nextAction).toBeUndefined();
  expect(() => withAddress(readModelOf([created()]), 'https://a.example')).toThrow('no shopper');
});

test('gaps §24: the notice that an authorization ends soon changes nothing', () => {
  expect(responseIn([...asAuthorized, authorizationExpiring()])).toEqual(responseIn(asAuthorized));
});

test.each(['NOT_SENT', 'FENCED'] as const)(
  'gaps §6: an operation ended by %s is listed, FAILED, PROVIDER_UNAVAILABLE',
  (outcome) => {
    const money = { amount: minor(2500), currency: 'USD' };
    const failureCode = 'PROVIDER_UNAVAILABLE' as const;
    const response = responseIn([
      ...asAuthorized,
      captureRequested(),
      {
        type: 'PaymentCaptureDeclined',
        data: { operationId: FIRST, ...money, failureCode, outcome },
      },
    ]);
    expect(response.transactions).toEqual([
      auth,
      { ...taken, result: 'FAILED', failure: { failureCode, advice: 'RETRY_LATER' } },
    ]);
  },
);

describe('gaps §24: when an authorization ends', () => {
  const authorizationExpiresAt = '2026-01-08T00:00:00.000Z';
  const withExpiry = [created(), authorized({ authorizationExpiresAt })];
  const left = 'authorizationExpiresAt';

  test.each<[string, PaymentEvent[]]>([
    ['AUTHORIZED', withExpiry],
    ['AUTHORIZED, while a capture is unresolved', [...withExpiry, captureRequested()]],
    ['AUTHORIZED, after a void was declined', [...withExpiry, voidRequested(), voidDeclined()]],
  ])('%s shows it, before the source', (_title, events) => {
    expect(responseIn(events)).toMatchObject({ authorizationExpiresAt });
    const source = { storeId: 's1' };
    const withSource = [created({ details: { source } }), ...events.slice(1)];
    expect(Object.keys(JSON.parse(bodyOf(readModelOf(withSource), HELD))).slice(-2)).toEqual([
      left,
      'source',
    ]);
  });

  test.each<[string, PaymentEvent[]]>([
    ['AUTHORIZED by a provider that does not tell it', asAuthorized],
    ['CAPTURED', [...withExpiry, captureRequested(), captured({ operationId: FIRST })]],
    ['VOIDED', [...withExpiry, voidRequested(), voided()]],
    ['VOIDED, because it ran out', [...withExpiry, authorizationExpired()]],
  ])('%s does not', (_title, events) => {
    expect(JSON.parse(bodyOf(readModelOf(events), HELD))).not.toHaveProperty(left);
  });
});

describe('gaps §2: transaction ids', () => {
  test('are the prefix and the 26 characters of the operation', () => {
    const operation = 'op_01JABCDEFGHJKMNPQRSTVWXYZ0';
    const response = responseIn([
      created({ operationId: operation }),
      authorized({ operationId: operation }),
    ]);
    expect(response.transactions[0]?.id).toBe('AUTH_01JABCDEFGHJKMNPQRSTVWXYZ0');
    const one = { operationId: operation };
    const contradicted = readModelOf([created(one), failed(one), outcomeContradicted(one)]);
    expect(contradicted.unresolved).toMatchObject([one]);
  });
});

describe('gaps §4: what is absent is left out', () => {
  const details = everyDetail((place) => place);
  const { group, ...open } = takeApart({ card, details });
  const payment = readModelOf([created(open)]);

  test('all that the merchant gave comes back, but for previousFailures', () => {
    const { previousFailures: _given, ...responded } = details;
    expect(responseOf(payment, { text: group })).toEqual({ ...asCreated, ...responded });
    expect(JSON.parse(keptBodyOf(payment))).toMatchObject({ ...open.details, personal: SEALED });
    expect(takeApart({ card, details: {} }).group).toEqual({ holderName: 'Jane Doe' });
    const fields = '"goodsType":"PHYSICAL","id":"productItems.id","name":"productItems.name",';
    expect(bodyOf(payment, { text: group })).toContain(fields);
  });

  test.each([
    ['ERASED', { erased: true, erasedAt: timeOf(9) }],
    ['SEALED', { sealed: true }],
    ['UNAVAILABLE', { unavailable: true }],
  ] as const)('what cannot be opened is %s where a name has to be, else left out', (name, why) => {
    const [shown, mirrored] = [card, encryptedCard].map((one) => ({ ...one, holderName: name }));
    expect(JSON.parse(bodyOf(payment, why))).toEqual({
      ...{ ...asCreated, ...open.details },
      productItems: details.productItems?.map((item) => ({ ...item, name })),
      paymentMethod: { type: 'CARD', card: shown, encryptedCard: mirrored },
      personalData: why,
    });
  });

  test('the text of a body without any optional field', () => {
    const { brand: _brand, holderName: _held, ...plain } = card;
    const open = { details: {}, card: { ...plain, cvvPresentDuringAttempt: false } };
    const body = bodyOf(readModelOf([created(open)]), HELD);
    expect(body).toBe(
      '{"paymentId":"pay_1","amount":2500,"authorizedAmount":0,"capturedAmount":0,' +
        '"refundedAmount":0,"refundableAmount":0,"currency":"USD","status":"PENDING",' +
        '"paymentMethod":{"type":"CARD","card":{"bin":"42424242",' +
        '"cvvPresentDuringAttempt":false,"expiryMonth":"12","expiryYear":"2030",' +
        '"holderName":"Jane Doe","last4":"4242"},"encryptedCard":{"bin":"42424242",' +
        '"cvvPresentDuringAttempt":false,"expiryMonth":"12","expiryYear":"2030",' +
        '"holderName":"Jane Doe"}},' +
        `"captureNow":false,"createdAt":"${timeOf(0)}","updatedAt":"${timeOf(0)}",` +
        '"transactions":[]}',
    );
  });

  test('a failure without a code of the provider’s own', () => {
    const event = failed();
    if (event.type !== 'PaymentFailed') throw new Error('failed() makes a PaymentFailed');
    const { providerFailureCode: _code, ...data } = event.data;
    const response = responseIn([created(), { type: 'PaymentFailed', data }]);
    expect(response.transactions[0]?.failure).toEqual({
      failureCode: 'CARD_DECLINED',
      advice: 'RETRY_LATER',
    });
  });
});

describe('gaps §23: what to do about a decline', () => {
  const failureFrom = (data: Partial<FailureData>) =>
    failureBodyOf(readModelOf([created(), failed(data)]))?.failure;

  test.each<[Failure['advice'], FailureCode[]]>([
    ['CORRECT_DATA', ['INVALID_CARD_NUMBER', 'INCORRECT_CVV']],
    ['USE_ANOTHER_CARD', ['EXPIRED_CARD', 'CARD_NOT_SUPPORTED', 'TRANSACTION_NOT_PERMITTED']],
    ['DO_NOT_RETRY', ['LOST_CARD', 'STOLEN_CARD', 'PICKUP_CARD', 'SUSPECTED_FRAUD']],
    ['AUTHENTICATE', ['AUTHENTICATION_REQUIRED']],
    ['RETRY_LATER', ['CARD_DECLINED', 'INSUFFICIENT_FUNDS', 'DO_NOT_HONOR', 'LIMIT_EXCEEDED']],
    ['RETRY_LATER', ['ISSUER_UNAVAILABLE', 'PROCESSING_ERROR', 'PROVIDER_UNAVAILABLE']],
    ['RETRY_LATER', ['UNKNOWN_DECLINE']],
  ])('%s: %j, also of events that were stored without advice', (advice, codes) => {
    for (const failureCode of codes) {
      expect(failureFrom({ failureCode })).toMatchObject({ failureCode, advice });
    }
  });

  test("the provider's own advice wins, and the network's codes stand as they came", () => {
    const data: FailureData = {
      failureCode: 'LOST_CARD',
      providerFailureCode: '41',
      advice: 'USE_ANOTHER_CARD',
      networkDeclineCode: '05',
      networkAdviceCode: '03',
    };
    expect(failureFrom(data)).toEqual(data);
  });
});

describe('interface, "Payment failure response"', () => {
  test('is made of a payment whose create failed', () => {
    expect(failureBodyOf(readModelOf([created(), failed()]))).toEqual({
      paymentId: 'pay_1',
      merchantReference: 'order-1',
      amount: 2500,
      currency: 'USD',
      status: 'FAILED',
      failure: FAILURE,
    });
  });

  test('leaves out a reference that was not given', () => {
    const body = failureBodyOf(readModelOf([created({ details: {} }), failed()]));
    expect(JSON.parse(JSON.stringify(body))).not.toHaveProperty('merchantReference');
    expect(body?.failure).toEqual(FAILURE);
  });

  test.each<[string, PaymentEvent[]]>([
    ['PENDING', [created()]],
    ['AUTHORIZED', asAuthorized],
    [
      'AUTHORIZED, with a declined capture',
      [...asAuthorized, captureRequested(), captureDeclined()],
    ],
    ['CAPTURED', asCaptured],
  ])('there is none for a payment that is %s', (_status, events) => {
    expect(failureBodyOf(readModelOf(events))).toBeUndefined();
  });
});

describe('what the read models keep beside the body', () => {
  test('merchant, revision, and each intent without an outcome with its time', () => {
    const readModel = readModelOf([...asCaptured, refundRequested({ amount: 800 })]);
    expect(readModel.merchantId).toBe('m_1');
    expect(readModel.revision).toBe(4);
    expect(readModel.unresolved).toEqual([{ operationId: SECOND, amount: 800, since: timeOf(4) }]);
    expect(readModelOf(asCaptured).unresolved).toEqual([]);
    expect(readModelOf([created()]).unresolved).toEqual([
      { operationId: ZERO, amount: 2500, since: timeOf(0) },
    ]);
  });

  test('gaps §16: what is not confirmed is listed beside open intents, and is not in flight', () => {
    const one = { operationId: SECOND, amount: 800 };
    const open = { operationId: operationId(3), amount: 300 };
    const both = [...asCaptured, refundRequested(one), refundRequested(open)];
    const still = { ...open, since: timeOf(5) };
    const approved = readModelOf([...both, refunded({ ...one, resolution: { evidence: 'e' } })]);
    expect(approved.unresolved).toMatchObject([still, { ...one, confirmation: 'UNCONFIRMED' }]);
    expect(approved.refundableAmount).toBe(1400);
    const carriedOut = [...both, refundDeclined(one), outcomeContradicted(one)];
    const contradicted = { ...one, since: timeOf(7), confirmation: 'CONTRADICTED' };
    expect(readModelOf(carriedOut).unresolved).toEqual([still, contradicted]);
    expect(readModelOf([...carriedOut, outcomeConfirmed(one)]).unresolved).toEqual([still]);
  });

  test('a stream without events has no read model', () => {
    expect(foldReadModel([])).toBeUndefined();
  });
});

describe('P2, P5: an event that cannot follow the read model throws', () => {
  const at = (revision: number, event: PaymentEvent) => ({ revision, time: timeOf(9), event });

  test.each([
    ['a gap', 3],
    ['the same revision again', 1],
    ['an older revision', 0],
  ])('%s', (_title, revision) => {
    const readModel = readModelOf(asAuthorized);
    expect(() => project(readModel, at(revision, captureRequested()))).toThrow(
      `revision ${revision} where 2 follows`,
    );
    expect(project(readModel, at(2, captureRequested())).revision).toBe(2);
  });

  test('a stream that begins later than at revision 0', () => {
    expect(() => project(undefined, at(1, created()))).toThrow('revision 1 where 0 follows');
  });

  test('a stream that begins with another event', () => {
    expect(() => project(undefined, at(0, authorized()))).toThrow(
      'the stream has no PaymentCreated',
    );
  });
});
