/** POST /api/v1/payments: every row of the interface's error table, and every test card. */
import { describe, expect, test } from '@jest/globals';
import { CARD_KEPT } from '../support/payment-events.ts';
import {
  APPROVED,
  CREATED_ID,
  expectError,
  expectResponseHeaders,
  idOf,
  locatedId,
  openInProcess,
  PAYMENTS,
  payment,
  rememberToken,
  serviceOfTests,
  token,
} from '../support/service-in-process.ts';
import { until } from '../support/until.ts';

const service = await serviceOfTests({ MAX_AMOUNT: '500000' });

const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

const CARD = { ...CARD_KEPT, holderName: 'Ada Lovelace' };
const { last4: _, ...ENCRYPTED_CARD } = CARD;

describe('interface, create: 200', () => {
  test('an authorization: every field of the request and the amounts of gaps §5', async () => {
    const sent = payment({ merchantReference: 'order-1' });
    const response = await service.ask('POST', PAYMENTS, sent);
    const { paymentMethod: __, ...echoed } = sent as Record<string, unknown>;
    expect(response.status).toBe(200);
    expect(response.json).toStrictEqual({
      ...echoed,
      paymentId: expect.stringMatching(CREATED_ID),
      status: 'AUTHORIZED',
      authorizedAmount: 2500,
      capturedAmount: 0,
      refundedAmount: 0,
      refundableAmount: 0,
      paymentMethod: { type: 'CARD', card: CARD, encryptedCard: ENCRYPTED_CARD },
      createdAt: TIME,
      updatedAt: TIME,
      transactions: [
        {
          id: expect.stringMatching(/^AUTH_[0-9A-Z]{26}$/),
          type: 'AUTH',
          amount: 2500,
          result: 'SUCCEEDED',
          createdAt: TIME,
        },
      ],
      authorizationExpiresAt: TIME,
    });
    expectResponseHeaders(response);
    expect(response.headers).toMatchObject({ etag: '"1"' });
    expect(response.headers).not.toHaveProperty('idempotent-replayed');
  });

  test('a sale: CAPTURED, with one SALE transaction (gaps §6)', async () => {
    const { status, json } = await service.create({ captureNow: true });
    expect(status).toBe(200);
    expect(json).toMatchObject({
      status: 'CAPTURED',
      captureNow: true,
      authorizedAmount: 2500,
      capturedAmount: 2500,
      refundedAmount: 0,
      refundableAmount: 2500,
    });
    expect(json.transactions).toStrictEqual([
      {
        id: expect.stringMatching(/^SALE_[0-9A-Z]{26}$/),
        type: 'SALE',
        amount: 2500,
        result: 'SUCCEEDED',
        createdAt: TIME,
      },
    ]);
    const entries = await service.ledger(json.paymentId);
    expect(entries).toMatchObject([{ kind: 'SALE', amount: 2500, outcome: 'APPROVED' }]);
  });
});

describe('interface, create: 402', () => {
  test.each<[string, string, string, string?, string?]>([
    ['4242424242424241', 'INVALID_CARD_NUMBER', 'CORRECT_DATA'],
    ['4000000000000002', 'CARD_DECLINED', 'RETRY_LATER', '05'],
    ['4000000000009995', 'INSUFFICIENT_FUNDS', 'RETRY_LATER', '51', '02'],
    ['4000000000009987', 'LOST_CARD', 'DO_NOT_RETRY', '41', '03'],
    ['4000000000009979', 'STOLEN_CARD', 'DO_NOT_RETRY', '43', '03'],
    ['4000000000000069', 'EXPIRED_CARD', 'USE_ANOTHER_CARD', '54', '01'],
    ['4000000000000127', 'INCORRECT_CVV', 'CORRECT_DATA', 'N7'],
    ['4000000000000119', 'PROCESSING_ERROR', 'RETRY_LATER'],
  ])('gaps §13, §23: %s is declined with %s, %s', async (...row) => {
    const [number, failureCode, advice, networkDeclineCode, networkAdviceCode] = row;
    const failure = {
      failureCode,
      providerFailureCode: failureCode.toLowerCase(),
      advice,
      ...(networkDeclineCode && { networkDeclineCode }),
      ...(networkAdviceCode && { networkAdviceCode }),
    };
    const response = await service.create({ number, merchantReference: 'declined' });
    expect(response.status).toBe(402);
    expect(response.json).toStrictEqual({
      paymentId: expect.stringMatching(CREATED_ID),
      merchantReference: 'declined',
      amount: 2500,
      currency: 'USD',
      status: 'FAILED',
      failure,
    });
    expectResponseHeaders(response);
    const { json } = await service.get(idOf(response));
    expect(json).toMatchObject({ status: 'FAILED', authorizedAmount: 0, capturedAmount: 0 });
    expect(json.transactions).toMatchObject([
      { type: 'AUTH', result: 'FAILED', amount: 2500, failure },
    ]);
  });
});

describe('interface, create: 503, and gaps §13: cards whose outcome is not known at once', () => {
  test('4210: never sent, FAILED, and the details say that nothing was charged', async () => {
    const response = await service.create({ number: '4000000000004210' });
    const id = locatedId(response);
    expectError(response, 503, 'PROVIDER_UNAVAILABLE', [
      `paymentId ${id}`,
      'the provider did not carry it out: nothing was charged',
    ]);
    const { json } = await service.get(id);
    expect(json.status).toBe('FAILED');
    expect(json.transactions).toMatchObject([
      { type: 'AUTH', result: 'FAILED', failure: { failureCode: 'PROVIDER_UNAVAILABLE' } },
    ]);
    expect(await service.ledger(id)).toHaveLength(0);
  });

  test.each([
    ['4228', 'FAILED', 0, { result: 'FAILED', failure: { failureCode: 'PROVIDER_UNAVAILABLE' } }],
    ['4236', 'CAPTURED', 1, { result: 'SUCCEEDED' }],
  ])('%s: unknown, then found: %s with %i charges', async (last4, status, charges, transaction) => {
    const quick = { PROVIDER_TIMEOUT_MS: '800', RECOVERY_DELAYS_MS: '20' };
    await using hasty = await openInProcess(quick);
    const response = await hasty.create({ number: `400000000000${last4}`, captureNow: true });
    const id = locatedId(response);
    expectError(response, 503, 'PROVIDER_UNAVAILABLE', [
      `paymentId ${id}`,
      'the outcome at the provider is not known yet; it is looked up and recorded on the payment',
    ]);
    expect(response.headers).toMatchObject({ 'retry-after': '1' });
    await until('it is resolved', async () => (await hasty.get(id)).json.status !== 'PENDING');
    const { json } = await hasty.get(id);
    expect(json).toMatchObject({ status, transactions: [{ type: 'SALE', ...transaction }] });
    expect(await hasty.ledger(id)).toHaveLength(charges);
  });
});

describe('interface, create: 400', () => {
  test.each<[string, unknown, string[]]>([
    ['broken JSON', '{"amount":', ['the body must be valid JSON; it breaks at character 11']],
    [
      'a bad shape and a broken rule (gaps §1)',
      payment({ amount: 500_001, captureNow: 'yes' }),
      ['captureNow must be a boolean'],
    ],
    [
      'its own card number in a text',
      payment({ descriptor: `x ${APPROVED}` }),
      ['descriptor must not hold the card number'],
    ],
  ])('%s', async (_name, body, details) => {
    const before = await service.ledger();
    const response = await service.ask('POST', PAYMENTS, body);
    expectError(response, 400, 'INVALID_REQUEST', details);
    expect(await service.ledger()).toEqual(before);
  });

  test('gaps §4: an Idempotency-Key that holds the card number', async () => {
    expectError(await service.create({}, { key: `k-${APPROVED}` }), 400, 'INVALID_REQUEST', [
      'Idempotency-Key must not hold the card number',
    ]);
  });
});

describe('interface, create: 422, 429, 503', () => {
  test('422: every broken business rule is named, and no provider is called', async () => {
    const before = await service.ledger();
    const refused = { currency: 'EUR', amount: 2 ** 53, number: '4000000000000002' };
    const response = await service.create(refused);
    expectError(response, 422, 'BUSINESS_RULE_VIOLATION', [
      'amount must not exceed 500000',
      'currency must be USD',
    ]);
    expect(await service.ledger()).toEqual(before);
  });

  test('422: a card type that is not accepted, whatever brand the request gives', async () => {
    await using strict = await openInProcess({ ACCEPTED_BRANDS: 'MASTERCARD' });
    expect((await strict.create({ number: '5555555555554444' })).status).toBe(200);
    expectError(await strict.create(), 422, 'BUSINESS_RULE_VIOLATION', [
      'paymentMethod.card must be one of MASTERCARD',
    ]);
  });

  test('429: past the burst, with Retry-After, per merchant, before the body is judged', async () => {
    await using limited = await openInProcess({
      RATE_LIMIT_PER_SECOND: '1',
      RATE_LIMIT_BURST: '2',
    });
    await rememberToken(limited);
    // At once, so that the bucket does not fill while the first two are carried out.
    const [first, second, response] = await Promise.all([
      limited.create(),
      limited.create(),
      limited.ask('POST', PAYMENTS, 'no JSON'),
    ]);
    expect([first.status, second.status]).toEqual([200, 200]);
    expectError(response, 429, 'RATE_LIMITED', ['too many requests; try again later']);
    expect(response.headers).toMatchObject({ 'retry-after': '1' });
    expect((await limited.create({}, { token: await token('m_other') })).status).toBe(200);
  });

  test('503: above the cap of requests at once, with Retry-After, and nothing is stored', async () => {
    await using small = await openInProcess({ MAX_IN_FLIGHT: '1' });
    const held = await small.faults.hold(() => small.create());
    const response = await small.create();
    expectError(response, 503, 'SERVICE_UNAVAILABLE', ['too many requests at once']);
    expect(response.headers).toMatchObject({ 'retry-after': '1' });
    held.release();
    expect((await held.response).status).toBe(200);
    expect(small.faults.calls).toHaveLength(1);
  });
});
