/** POST capture, void and refund: every row of the interface's error table, and their test cards. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import {
  expectError,
  expectResponseHeaders,
  type InProcess,
  idOf,
  NO_RETRIES,
  openInProcess,
  PAYMENTS,
  serviceOfTests,
  timeless,
  token,
} from '../support/service-in-process.ts';

let authorized: string;
let captured: string;

const service = await serviceOfTests(NO_RETRIES);
beforeEach(async () => {
  authorized = idOf(await service.create());
  captured = idOf(await service.create({ captureNow: true }));
});

const CHANGES = ['capture', 'void', 'refund'] as const;
type Change = (typeof CHANGES)[number];

/** The payment on which a change is allowed. */
const suited = (change: Change): string => (change === 'refund' ? captured : authorized);
const NOT_ALLOWED = {
  capture: 'CAPTURE_NOT_ALLOWED',
  void: 'VOID_NOT_ALLOWED',
  refund: 'REFUND_NOT_ALLOWED',
} as const;
const ID_FORMS = {
  capture: /^CAPT_[0-9A-Z]{26}$/,
  void: /^VOID_[0-9A-Z]{26}$/,
  refund: /^REFN_[0-9A-Z]{26}$/,
};
const UNKNOWN_ID = 'pay_00000000000000000000000000';
const NO_ID = ['paymentId is empty; the list is at /api/v1/payments, without a slash at its end'];
const ID_FORM = ['paymentId must be 1 to 32 characters of A-Z, a-z, 0-9, _ and -'];

describe('interface, capture, void, refund: 200', () => {
  test.each<[Change, object]>([
    ['capture', { status: 'CAPTURED', capturedAmount: 2500, refundableAmount: 2500 }],
    ['void', { status: 'VOIDED', authorizedAmount: 2500, capturedAmount: 0 }],
    ['refund', { status: 'REFUNDED', refundedAmount: 2500, refundableAmount: 0 }],
  ])(
    '%s without a body: the full amount, and GET gives the same bytes',
    async (change, amounts) => {
      const response = await service.change(change, suited(change));
      expect(response.status).toBe(200);
      expect(response.json).toMatchObject({ amount: 2500, ...amounts });
      expect(response.json.transactions).toHaveLength(2);
      expect(response.json.transactions[1]).toStrictEqual({
        id: expect.stringMatching(ID_FORMS[change]),
        type: change.toUpperCase(),
        amount: 2500,
        result: 'SUCCEEDED',
        createdAt: response.json.updatedAt,
      });
      expectResponseHeaders(response);
      const read = await service.get(suited(change));
      expect(read.text).toBe(response.text);
      expect(read.headers.etag).toBe(response.headers.etag);
    },
  );

  test.each(['no JSON', 'null', '[1]', Buffer.from([0xff])])(
    'gaps §3: a void ignores its body (%j)',
    async (body) => {
      expect((await service.change('void', authorized, body)).json.status).toBe('VOIDED');
    },
  );

  test('gaps §3: an amount by its own name, and by the alias', async () => {
    const captured = await service.change('capture', authorized, { captureAmount: 1500 });
    expect(captured.json.capturedAmount).toBe(1500);
    const { json } = await service.change('refund', authorized, { amount: 500 });
    expect([json.refundedAmount, json.refundableAmount]).toEqual([500, 1000]);
  });

  test('gaps §3: the body is read as JSON, whatever the content type says', async () => {
    const headers = { 'content-type': 'text/plain' };
    const response = await service.change('capture', authorized, '{"captureAmount":1}', {
      headers,
    });
    expect(response.json.capturedAmount).toBe(1);
  });
});

describe('interface, capture and refund: 400 INVALID_REQUEST', () => {
  const bad: [string, (name: string) => unknown, (name: string) => string][] = [
    [
      'a fraction that a parser rounds away',
      (n) => `{"${n}":100.00000000000000001}`,
      (n) => `${n} must be a positive integer of minor units: 2500 is 25 dollars`,
    ],
    ['no JSON', () => '{', () => 'the body must be valid JSON; it breaks at character 2'],
    [
      'the card number in blocks (gaps §4)',
      () => ({ reason: 'card 4242 4242-4242 4242' }),
      () => 'the request must not hold the card number',
    ],
  ];
  const rows = bad.flatMap(([title, body, detail]) =>
    (['capture', 'refund'] as const).map((change) => ({ title, body, detail, change })),
  );

  test.each(rows)('$change: $title', async ({ body, detail, change }) => {
    const before = await service.ledger();
    const name = `${change}Amount`;
    const response = await service.change(change, suited(change), body(name));
    expectError(response, 400, 'INVALID_REQUEST', [detail(name)]);
    expect(await service.ledger()).toEqual(before);
  });
});

describe.each(CHANGES)('interface, %s: errors', (change) => {
  const badId = change === 'void' ? 'INVALID_PAYMENT_ID' : 'INVALID_REQUEST';

  test.each([
    ['empty', ''],
    ['%2F', 'a%2Fb'],
    ['a broken percent escape', '%zz'],
  ])(`400 ${badId}: an id that is %s (gaps §2)`, async (_name, id) => {
    expectError(await service.change(change, id), 400, badId, id === '' ? NO_ID : ID_FORM);
  });

  test('400: a key that holds the card number', async () => {
    const key = 'k-4242424242424242';
    const card = await service.change(change, suited(change), undefined, { key });
    expectError(card, 400, 'INVALID_REQUEST', ['the request must not hold the card number']);
  });

  test("404: unknown, and another merchant's in the same bytes", async () => {
    const unknown = await service.change(change, UNKNOWN_ID);
    expectError(unknown, 404, 'PAYMENT_NOT_FOUND');
    const other = { token: await token('m_other') };
    const foreign = await service.change(change, suited(change), undefined, other);
    expect(timeless(foreign)).toEqual(timeless(unknown));
    expect(await service.ledger(suited(change))).toHaveLength(1);
  });

  test('503: not sent to the provider: nothing changed, and the next try is free', async () => {
    const id = suited(change);
    const before = (await service.get(id)).json;
    service.faults.next('not sent');
    const response = await service.change(change, id);
    expectError(response, 503, 'PROVIDER_UNAVAILABLE', [
      `paymentId ${id}`,
      `the provider did not carry out the ${change}: nothing was changed`,
    ]);
    expect(response.headers).toMatchObject({ 'retry-after': '1', location: `${PAYMENTS}/${id}` });
    const { transactions, updatedAt: _, ...after } = (await service.get(id)).json;
    const { transactions: earlier, updatedAt: __, ...unchanged } = before;
    expect(after).toStrictEqual(unchanged);
    expect(transactions).toMatchObject([
      ...earlier,
      { result: 'FAILED', failure: { failureCode: 'PROVIDER_UNAVAILABLE' } },
    ]);
    expect((await service.change(change, id)).status).toBe(200);
    expect(await service.ledger(id)).toHaveLength(2);
  });
});

describe('interface, States: 422 for a command that the state or the amounts forbid', () => {
  const capture = (id: string, captureAmount?: number) =>
    service.change('capture', id, captureAmount && { captureAmount });
  const refund = (id: string, refundAmount?: number) =>
    service.change('refund', id, refundAmount && { refundAmount });

  test.each([2501, 2 ** 53])(
    'rules 1 and 3: %i, above what was authorized or captured',
    async (amount) => {
      expectError(await capture(authorized, amount), 422, 'CAPTURE_NOT_ALLOWED', [
        'captureAmount must not exceed the authorized amount of 2500',
      ]);
      expectError(await refund(captured, amount), 422, 'REFUND_NOT_ALLOWED', [
        'refundAmount must not exceed the 2500 left to refund',
      ]);
    },
  );

  test('rules 1 to 3: a payment in another state is refused, and stays as it is', async () => {
    const voided = idOf(await service.create());
    await service.change('void', voided);
    const wrong: [Change, string, string][] = [
      ['capture', voided, 'only an AUTHORIZED payment can be captured; this one is VOIDED'],
      ['void', captured, 'only an AUTHORIZED payment can be voided; this one is CAPTURED'],
      ['refund', authorized, 'only a CAPTURED payment can be refunded; this one is AUTHORIZED'],
    ];
    const calls = service.faults.calls.length;
    for (const [change, id, why] of wrong) {
      const before = await service.get(id);
      expectError(await service.change(change, id), 422, NOT_ALLOWED[change], [why]);
      expect((await service.get(id)).text).toBe(before.text);
    }
    expect(service.faults.calls).toHaveLength(calls);
  });
});

describe('gaps §13: cards that decline later', () => {
  const expectDeclined = async (change: Change, id: string, code: string, own: string) => {
    const before = (await service.get(id)).json;
    const send = () => service.change(change, id, undefined, { key: 'declined' });
    const response = await send();
    expectError(response, 422, NOT_ALLOWED[change], [
      `the provider declined the ${change}`,
      `failureCode ${code}`,
      `providerFailureCode ${own}`,
    ]);
    const { json } = await service.get(id);
    expect([json.status, json.updatedAt]).toEqual([before.status, response.json.timestamp]);
    expect(json.transactions.at(-1)).toMatchObject({
      type: change.toUpperCase(),
      amount: 2500,
      result: 'FAILED',
      failure: { failureCode: code, providerFailureCode: own },
    });
    if (change === 'capture') expect((await service.change('void', id)).json.status).toBe('VOIDED');
    // gaps §8: the stored outcome, with its time, whatever happened since.
    const calls = service.faults.calls.length;
    const repeat = await send();
    expect([repeat.status, repeat.text]).toEqual([422, response.text]);
    expect(repeat.headers).toMatchObject({ 'idempotent-replayed': 'true' });
    expect(service.faults.calls).toHaveLength(calls);
  };

  test('4244: its capture is declined with PROCESSING_ERROR; it can be voided', async () => {
    const id = idOf(await service.create({ number: '4000000000004244' }));
    await expectDeclined('capture', id, 'PROCESSING_ERROR', 'processing_error');
  });

  test('4251: its refund is declined with TRANSACTION_NOT_PERMITTED', async () => {
    const id = idOf(await service.create({ number: '4000000000004251', captureNow: true }));
    await expectDeclined('refund', id, 'TRANSACTION_NOT_PERMITTED', 'refund_not_permitted');
    expect((await service.get(id)).json).toMatchObject({
      refundedAmount: 0,
      refundableAmount: 2500,
    });
  });
});

describe('gaps §18: a payment that has all the operations it may have', () => {
  const REACHED = ['the payment has reached 3 operations'];

  let few: InProcess;
  beforeAll(async () => {
    few = await openInProcess({ ...NO_RETRIES, MAX_OPERATIONS_PER_PAYMENT: '3' });
  });
  afterAll(() => few[Symbol.asyncDispose]());

  const refund = (paymentId: string, refundAmount: number, key?: string) =>
    few.change('refund', paymentId, { refundAmount }, key === undefined ? {} : { key });
  const audit = async (paymentId: string, what: string) =>
    (
      await few.ask('GET', `/audit/v1/payments/${paymentId}/${what}`, undefined, {
        token: await token('*', 'audit:read'),
      })
    ).json as unknown as Record<string, unknown[]>;

  /** A sale and two refunds of 500: as many operations as it may have, and 1500 left. */
  const atCeiling = async (): Promise<string> => {
    const paymentId = idOf(await few.create({ captureNow: true }));
    await refund(paymentId, 500);
    expect((await refund(paymentId, 500, 'second')).status).toBe(200);
    return paymentId;
  };

  test('the next is 422 of its operation, before any intent, and the provider is not called', async () => {
    const paymentId = await atCeiling();
    const before = await audit(paymentId, 'events');
    for (let n = 0; n < 2; n += 1) {
      expectError(await refund(paymentId, 500, 'third'), 422, 'REFUND_NOT_ALLOWED', REACHED);
    }
    expect(await audit(paymentId, 'events')).toEqual(before);
    expect(await few.ledger(paymentId)).toHaveLength(3);
    expect((await few.get(paymentId)).json).toMatchObject({ refundableAmount: 1500 });
  });

  test('a repeat under the key of an operation that exists still gets its stored outcome', async () => {
    const paymentId = await atCeiling();
    const stored = await few.get(paymentId);
    const repeat = await refund(paymentId, 500, 'second');
    expect(repeat.headers['idempotent-replayed']).toBe('true');
    expect([repeat.status, repeat.text]).toEqual([200, stored.text]);
    expect(timeless(await refund(paymentId, 500, 'second'))).toEqual(timeless(repeat));
  });

  test('explain says the same, and names the operation that was the last', async () => {
    const paymentId = await atCeiling();
    const json = await audit(paymentId, 'explain?command=refund&amount=500');
    expect(json).toMatchObject({ allowed: false, code: 'REFUND_NOT_ALLOWED', details: REACHED });
    expect(json.forbiddenBy).toMatchObject([{ type: 'PaymentRefundRequested', revision: 5 }]);
  });
});
