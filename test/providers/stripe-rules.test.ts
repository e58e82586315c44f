/** What the driver of Stripe promises beyond the port: each case is a way to lose money. */
import { setTimeout as wait } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { LedgerEndNotFound, type Provider, type ProviderOperation } from '../../providers/port.ts';
import { confirmIntent, suffixOf } from '../../providers/stripe/requests.ts';
import { CardSecret } from '../../shared/payment/card.ts';
import type { ThreeDSecure } from '../../shared/payment/fields.ts';
import { authorize, followUp } from '../support/provider-operations.ts';
import { type Step, type StripeDouble, stripeDouble } from '../support/stripe-double/server.ts';
import {
  approvedBy,
  askOnce,
  driverOver,
  executed,
  keepIt,
  questionOf,
} from '../support/stripe-fault-rounds.ts';
import { until } from '../support/until.ts';

const HOUR_MS = 3_600_000;
let double: StripeDouble;
let provider: Provider;
let nowMs: number;

beforeEach(async () => {
  nowMs = Date.now();
  double = await stripeDouble();
  provider = driverOver(double.url, {
    nowMs: () => nowMs,
  });
});
afterEach(async () => {
  await provider.close();
  await double.close();
});

const steps = () => double.received.map(({ step }) => step);
const authorized = (amount = 2000) => approvedBy(provider, authorize(undefined, { amount }));
const sold = (amount = 2000) =>
  approvedBy(provider, authorize(undefined, { amount, kind: 'SALE' }));
/** In the books alone, by the operation `op_<made>`; `created` in seconds since 1970. */
const authorizedAt = (made: number, created: number): void => {
  const { body } = double.books.open(
    new Map([
      ['amount', '100'],
      ['currency', 'usd'],
      ['capture_method', 'manual'],
      ['metadata[operationId]', `op_${made}`],
      ['metadata[paymentId]', `pay_${made}`],
    ]),
  );
  Object.assign(double.books.intents.get((body as { id: string }).id) ?? {}, {
    created,
    status: 'requires_capture',
    latest_charge: { object: 'charge', status: 'succeeded' },
  });
};
const madeElsewhereAt = (created: number): void => {
  Object.assign(double.books.dashboard.open(), { created });
};
const questionNow = (operation: ProviderOperation, reference?: string) =>
  questionOf(operation, reference, nowMs);

const byToken = (token: string, fields: { threeDSecure?: ThreeDSecure | undefined } = {}) => ({
  ...authorize(),
  card: new CardSecret({ token, holderName: 'Jane Doe', ...fields }),
});

test('gaps §21: a confirm alone carries the results of 3-D Secure, in the names of Stripe', () => {
  const cryptogram = `${'A'.repeat(27)}=`;
  const transactionId = '4bd1d5b8-7c1e-4b42-9d55-3f1a8c2e6b70';
  const results = { version: '2.2.0', eci: '05', cryptogram, transactionId } as const;
  const given = (threeDSecure?: ThreeDSecure) =>
    Object.entries(confirmIntent(byToken('pm_1', { threeDSecure }), 'pi_1', 'pm_1').params)
      .filter(([name]) => name.startsWith('payment_method_options'))
      .map(([name, value]) => [name.split(/[[\]]+/).at(-2), value]);
  const sent = [
    ['version', '2.2.0'],
    ['electronic_commerce_indicator', '05'],
    ['cryptogram', cryptogram],
    ['transaction_id', transactionId],
  ];
  expect(given(results)).toEqual(sent);
  expect(given({ ...results, exemption: 'LOW_RISK' })).toEqual([
    ...sent,
    ['exemption_indicator', 'low_risk'],
  ]);
  expect(given()).toEqual([]);
});

describe('a machine that was suspended', () => {
  const DAY_AND_MORE_MS = 26 * HOUR_MS;
  /** The wall clock is a day ahead once Stripe has received `step`, or once it was looked at. */
  const wakingAfter = (step?: Step) => {
    let looks = 0;
    return driverOver(double.url, {
      nowMs: () => {
        looks += 1;
        const hasSlept = step === undefined ? looks > 1 : steps().includes(step);
        return nowMs + (hasSlept ? DAY_AND_MORE_MS : 0);
      },
    });
  };
  const late = { outcome: 'NOT_SENT', byProvider: true, reason: 'too_late' };

  test.each([
    ['CAPTURE', undefined, 'capture'],
    ['VOID', 'update', 'cancel'],
  ] as const)('does not send its %s: the fence of it may have run out', async (...row) => {
    const [kind, lastStep, neverSent] = row;
    const { operation, authorizationReference } = await authorized();
    const waking = wakingAfter(lastStep);
    const change = followUp(kind, operation, { authorizationReference });
    expect(await waking.execute(change, keepIt)).toEqual(late);
    await waking.close();
    expect(steps()).not.toContain(neverSent);
  });

  test('does not send its refund, nor the confirm of a payment', async () => {
    const { operation, authorizationReference } = await sold();
    const waking = wakingAfter();
    const refund = followUp('REFUND', operation, { authorizationReference });
    expect(await waking.execute(refund, keepIt)).toEqual(late);
    await waking.close();
    double.received.length = 0;
    const opening = wakingAfter('open');
    const { outcome } = await opening.execute(authorize(), keepIt);
    await opening.close();
    expect([outcome, steps()]).toEqual(['NOT_SENT', ['open']]);
    expect(double.books.refunds).toEqual([]);
  });
});

describe('a PaymentIntent that is used no more is canceled beside the call, so that none stays open', () => {
  const left = () =>
    [...double.books.intents.values()].map((one) => [one.status, one.cancellation_reason]);
  const canceled = (count: number) => Array(count).fill(['canceled', 'abandoned']);

  test('after a decline, whose outcome and ledger stay as they were', async () => {
    const operation = authorize('4000000000000002');
    const { outcome: said, reference } = await executed(provider, operation);
    await until('it is canceled', async () => left()[0]?.[0] === 'canceled');
    expect(left()).toEqual(canceled(1));
    expect(await provider.lookUp(questionNow(operation, reference))).toEqual(said);
    expect(await provider.fence(questionNow(operation, reference))).toEqual(said);
    expect((await provider.ledger(null, 100)).entries).toMatchObject([{ outcome: 'DECLINED' }]);
  });

  test('after a failure before the confirm: of the number, of the store, of the key', async () => {
    const lost = () => Promise.reject(new Error('the append failed'));
    await provider.execute(authorize('4000000000000071'), keepIt);
    await provider.execute(authorize(), lost);
    double.plan('confirm', '401');
    await provider.execute(authorize(), keepIt);
    await until('all are canceled', async () => left().every(([status]) => status === 'canceled'));
    expect(left()).toEqual(canceled(3));
  });

  test('but not what an earlier log’s call had approved under the same operation id', async () => {
    const { operation, reference } = await authorized();
    // The same open is replayed, and nothing is kept.
    const lost = () => Promise.reject(new Error('the append failed'));
    expect((await provider.execute(operation, lost)).outcome).toBe('NOT_SENT');
    await until('it was looked at', async () => steps().includes('read'));
    expect(double.books.intents.get(reference)?.status).toBe('requires_capture');
    expect((await provider.fence(questionNow(operation, reference))).outcome).toBe('APPROVED');
  });

  test.each(['read', 'cancel'] as const)('a failure of its %s changes nothing', async (step) => {
    const operation = authorize('4000000000000002');
    double.plan(step, '500 before acting');
    const { outcome: said, reference } = await executed(provider, operation);
    await until('it was tried', async () => steps().includes(step));
    expect(await provider.fence(questionNow(operation, reference))).toEqual(said);
    expect(left()).toEqual([['requires_payment_method', null]]);
  });
});

test('names itself and its version, and logs the ids that Stripe gave what did not succeed', async () => {
  const lines: object[] = [];
  const logger = { info: (fields: object) => void lines.push(fields) };
  const logging = driverOver(double.url, { logger });
  await logging.execute(authorize(), keepIt);
  expect(lines).toEqual([]);
  const operation = authorize('4000000000000002');
  await logging.execute(operation, keepIt);
  double.plan('open', '401');
  await logging.execute(authorize(), keepIt);
  double.plan('confirm', 'another amount');
  await logging.execute(authorize(), keepIt);
  double.plan('confirm', 'reset after acting');
  await logging.execute(authorize(), keepIt);
  const { paymentId } = operation;
  const stripeNotice = 'Read the page of errors.';
  const requestIds = [expect.stringMatching(/^req_double_\d+$/)];
  expect(lines).toMatchObject([
    { paymentId, operation: 'AUTHORIZE', outcome: 'DECLINED', requestIds, stripeNotice },
    { outcome: 'NOT_SENT', reason: 'unauthorized', requestIds, stripeNotice },
    { outcome: 'UNKNOWN', reason: 'mismatch', requestIds },
    { outcome: 'UNKNOWN', reason: 'broken', requestIds },
  ]);
  await logging.close();
  for (const { headers } of double.received)
    expect(headers['user-agent']).toMatch(/^payments\/\d+\.\d+\.\d+$/);
});

describe('a create', () => {
  test('keeps the PaymentIntent before it sends the card, and sends the confirm once', async () => {
    const kept: string[] = [];
    await provider.execute(authorize(), async (reference) => {
      kept.push(reference);
      expect(steps()).toEqual(['open']);
      expect(double.books.intents.get(reference)?.latest_charge).toBeNull();
    });
    expect(kept).toHaveLength(1);
    expect(steps()).toEqual(['open', 'confirm']);
  });

  test.each<[string, string, number, (late: Promise<void>) => Promise<void>]>([
    ['cannot be kept', 'not_opened', 5_000, () => Promise.reject(new Error('the append failed'))],
    ['is not kept in time', 'not_opened', 200, (late) => late],
    ['is kept with little of its time left', 'too_late', 400, () => wait(340)],
  ])('whose reference %s is never sent', async (_how, reason, timeoutMs, keep) => {
    const quick = driverOver(double.url, { timeoutMs });
    const late = Promise.withResolvers<void>();
    const response = await quick.execute(authorize(), () => keep(late.promise));
    expect(response).toMatchObject({ outcome: 'NOT_SENT', reason });
    late.resolve();
    await quick.close();
    expect(steps()).not.toContain('confirm');
  });

  test.each([
    ['4000000000000002', 'CARD_DECLINED', 'generic_decline', {}],
    [
      '4000000000009995',
      'INSUFFICIENT_FUNDS',
      'insufficient_funds',
      { advice: 'RETRY_LATER', networkDeclineCode: '51', networkAdviceCode: '02' },
    ],
    ['4000000000009987', 'LOST_CARD', 'lost_card', { advice: 'DO_NOT_RETRY' }],
    ['4000000000009979', 'STOLEN_CARD', 'stolen_card', {}],
    ['4000000000000069', 'EXPIRED_CARD', 'expired_card', {}],
    ['4000000000000127', 'INCORRECT_CVV', 'incorrect_cvc', { advice: 'CORRECT_DATA' }],
    ['4000000000000119', 'PROCESSING_ERROR', 'processing_error', {}],
    ['4000002760003184', 'AUTHENTICATION_REQUIRED', 'authentication_required', {}],
  ])('%s is declined with %s, gaps §23: with the advice of Stripe', async (...row) => {
    const [number, failureCode, providerFailureCode, advice] = row;
    const operation = authorize(number);
    const { outcome, reference = '' } = await executed(provider, operation);
    const declined = { outcome: 'DECLINED', failureCode, providerFailureCode, ...advice };
    expect(outcome).toEqual(declined);
    expect(await provider.lookUp(questionNow(operation, reference))).toEqual(declined);
    expect(await provider.fence(questionNow(operation, reference))).toEqual(declined);
  });

  test('gaps §24: the end of an authorization is that of capture_before, at once and when asked later', async () => {
    const operation = authorize();
    const { outcome, reference = '' } = await executed(provider, operation);
    const { created } = double.books.intents.get(reference) ?? { created: 0 };
    const authorizationExpiresAt = new Date((created + 7 * 86_400) * 1000).toISOString();
    expect(outcome).toMatchObject({ outcome: 'APPROVED', authorizationExpiresAt });
    expect(await provider.lookUp(questionNow(operation, reference))).toEqual(outcome);
    const sale = await provider.execute(authorize(undefined, { kind: 'SALE' }), keepIt);
    expect(sale).not.toHaveProperty('authorizationExpiresAt');
  });

  test('gaps §22: Stripe keeps the metadata and the reference, and none in place of our own', async () => {
    const metadata = { order: '7', empty: '', paymentId: 'x', captureOperationId: 'x' };
    const operation = authorize(undefined, { merchantReference: 'order-7', metadata });
    const { operationId, paymentId } = operation;
    expect(await provider.execute(operation, keepIt)).toMatchObject({ outcome: 'APPROVED' });
    expect([...double.books.intents.values()].at(-1)?.metadata).toEqual({
      fencedOperationId: 'none',
      order: '7',
      merchantReference: 'order-7',
      operationId,
      paymentId,
    });
    const [open] = double.received.filter(({ step }) => step === 'open');
    expect(open?.params.get('description')).toBe('order-7');
  });

  test('an address that Stripe would reject does not end the payment: it is left out', async () => {
    const email = 'jane@doe@example.com';
    const address = { street: '', country: 'us' };
    const operation = authorize('4000000000000077', {
      billing: { address },
      consumer: { firstName: 'Jane', email },
    });
    expect(await provider.execute(operation, keepIt)).toMatchObject({ outcome: 'APPROVED' });
    const [made] = double.received.filter(({ step }) => step === 'method');
    const sent = [...(made?.params ?? [])].filter(([name]) => name.startsWith('billing_details'));
    expect(sent).toEqual([
      ['billing_details[name]', 'Jane Doe'],
      ['billing_details[address][country]', 'US'],
    ]);
  });

  test('a wrong check digit is the card’s, and is declined before anything is confirmed', async () => {
    const raw = driverOver(double.url, { testTokens: false });
    expect(await raw.execute(authorize('4242424242424241'), keepIt)).toMatchObject({
      outcome: 'DECLINED',
      failureCode: 'INVALID_CARD_NUMBER',
    });
    await raw.close();
    expect(steps()).not.toContain('confirm');
  });

  const FAULTS = [
    ...['parameter_unknown', 'testmode_charges_only', 'capability_not_active', undefined],
  ];
  test.each(FAULTS)(
    'a 400 that is a fault of the account or of ours (%s) declines no card',
    async (code) => {
      const misconfigured = { outcome: 'NOT_SENT', byProvider: true, reason: 'misconfigured' };
      for (const step of ['open', 'method', 'confirm'] as const) {
        double.reject(step, code);
        expect(await provider.execute(authorize('4000000000000077'), keepIt)).toEqual(
          misconfigured,
        );
      }
      const { operation, authorizationReference } = await authorized();
      double.reject('capture', code);
      const capture = followUp('CAPTURE', operation, { authorizationReference });
      expect(await provider.execute(capture, keepIt)).toEqual(misconfigured);
    },
  );

  test.each([
    ['open', 'amount_too_small', 'LIMIT_EXCEEDED'],
    ['method', 'invalid_expiry_year', 'EXPIRED_CARD'],
    ['confirm', 'card_of_another_kind', 'UNKNOWN_DECLINE'],
    ['confirm', 'payment_intent_action_required', 'AUTHENTICATION_REQUIRED'],
  ] as const)(
    'a 400 at %s for the card or the amount (%s) is a decline',
    async (step, code, failureCode) => {
      double.reject(step, code);
      expect(await provider.execute(authorize('4000000000000077'), keepIt)).toEqual({
        outcome: 'DECLINED',
        failureCode,
        providerFailureCode: code,
      });
    },
  );

  test('an account that may not send raw numbers is misconfigured, and no card is declined', async () => {
    const raw = driverOver(double.url, { testTokens: false });
    double.rejectRawCards();
    expect(await raw.execute(authorize(), keepIt)).toMatchObject({
      outcome: 'NOT_SENT',
      reason: 'misconfigured',
    });
    await raw.close();
  });

  test.each([
    ['401', 'unauthorized'],
    ['403', 'forbidden'],
    ['429 rate_limit', 'rate_limited'],
  ] as const)('%s is %s, and no card is declined', async (fault, reason) => {
    for (const step of ['open', 'confirm'] as const) {
      double.plan(step, fault);
      expect(await provider.execute(authorize(), keepIt)).toEqual({
        outcome: 'NOT_SENT',
        byProvider: true,
        reason,
      });
    }
  });

  test('an open that names what does not exist is never sent: nothing was confirmed', async () => {
    double.plan('open', 'another id');
    expect(await provider.execute(authorize(), keepIt)).toEqual({
      outcome: 'NOT_SENT',
      byProvider: true,
      reason: 'misconfigured',
    });
    const charges = [...double.books.intents.values()].map((intent) => intent.latest_charge);
    expect(charges).toEqual([null]);
  });

  test('only a Stripe that is away counts for the circuit breaker', async () => {
    await double.close();
    expect(await provider.execute(authorize(), keepIt)).toEqual({
      outcome: 'NOT_SENT',
      reason: 'unreachable',
    });
    double = await stripeDouble();
  });
});

test('a change without the PaymentIntent of its authorization is not sent, and search is not asked for it', async () => {
  const { operation } = await authorized();
  for (const kind of ['CAPTURE', 'VOID', 'REFUND'] as const) {
    const change = followUp(kind, operation);
    expect((await provider.execute(change, keepIt)).outcome).toBe('NOT_SENT');
    expect((await provider.fence(questionNow(change))).outcome).toBe('UNKNOWN');
  }
  expect(steps()).toEqual(['open', 'confirm']);
});

describe('the fence', () => {
  test('gaps §21: finds a shopper who fails in its midst declined, as the ledger has it, also when asked again', async () => {
    const authentication = { returnUrl: 'https://shop.example/back' };
    const operation = authorize('4000002760003184', { authentication });
    const { outcome: begun, reference = '' } = await executed(provider, operation);
    expect(begun.outcome).toBe('ACTION_REQUIRED');
    const waitsUntil = new Date(nowMs).toISOString();
    const question = { ...questionNow(operation, reference), waitsUntil };
    const act = double.hold();
    const fenced = provider.fence(question);
    await until('it cancels', () => steps().at(-1) === 'cancel');
    double.books.authenticate(reference, false);
    act();
    const declined = { outcome: 'DECLINED', failureCode: 'AUTHENTICATION_REQUIRED' };
    expect(await fenced).toMatchObject(declined);
    expect(double.books.intents.get(reference)?.status).toBe('canceled');
    expect(await provider.lookUp(question)).toMatchObject(declined);
    expect(await provider.fence(question)).toMatchObject(declined);
    const { entries } = await provider.ledger(null, 10);
    expect(entries).toMatchObject([{ operationId: operation.operationId, ...declined }]);
  });

  test.each([
    ['SALE', 'succeeded'],
    ['AUTHORIZE', 'requires_capture'],
  ] as const)('finds a %s whose reference was lost, without search', async (kind, status) => {
    const operation = authorize(undefined, { kind });
    await provider.execute(operation, keepIt);
    madeElsewhereAt(Math.floor(nowMs / 1_000));
    double.endSearch();
    expect(await provider.fence(questionNow(operation))).toMatchObject({ outcome: 'APPROVED' });
    const intents = [...double.books.intents.values()];
    expect(intents.map((one) => one.status)).toContain(status);
    expect(await provider.fence(questionNow(authorize()))).toEqual({ outcome: 'FENCED' });
    double.plan('list', '500 before acting');
    expect((await provider.fence(questionNow(authorize()))).outcome).toBe('UNKNOWN');
  });

  test.each([-10, 10])(
    'finds it with a clock of ours that is %p minutes off, or was',
    async (minutes) => {
      const atMs = nowMs + minutes * 60_000;
      const wrong = driverOver(double.url, { nowMs: () => atMs });
      const operation = authorize(undefined, { kind: 'SALE' });
      await wrong.execute(operation, keepIt);
      double.endSearch();
      const question = { ...questionNow(operation), requestedAt: new Date(atMs).toISOString() };
      expect((await wrong.fence(question)).outcome).toBe('APPROVED');
      expect((await wrong.fence(questionNow(operation))).outcome).toBe('APPROVED');
      await wrong.close();
    },
  );

  test('cancels again where Stripe failed: its stored 500 does not stand for a day', async () => {
    const operation = authorize();
    double.plan('confirm', 'reset before acting');
    const { reference } = await executed(provider, operation);
    double.plan('cancel', '500 before acting');
    expect((await provider.fence(questionNow(operation, reference))).outcome).toBe('UNKNOWN');
    expect(await provider.fence(questionNow(operation, reference))).toEqual({ outcome: 'FENCED' });
  });

  test.each<[string, string, (operationId: string) => string | undefined, 'FENCED' | 'APPROVED']>([
    ['our own fence', 'abandoned', (operationId) => operationId, 'FENCED'],
    ['a fence of an earlier version', 'abandoned', () => undefined, 'FENCED'],
    ['the Dashboard', 'abandoned', () => 'none', 'APPROVED'],
    ['the Dashboard after the fence of a capture', 'abandoned', () => 'op_capture', 'APPROVED'],
    ['Stripe', 'automatic', () => 'none', 'APPROVED'],
  ])('a hold that %s released (%s)', async (_who, reason, nameOf, outcome) => {
    const { operation, reference } = await authorized();
    const { operationId } = operation;
    const intent = double.books.intents.get(reference);
    const metadata = { ...intent?.metadata, fencedOperationId: nameOf(operationId) };
    Object.assign(intent ?? {}, { status: 'canceled', cancellation_reason: reason, metadata });
    // JSON leaves out a name that is undefined.
    expect((await provider.fence(questionNow(operation, reference))).outcome).toBe(outcome);
    const { entries } = await provider.ledger(null, 10);
    const isKept = outcome === 'APPROVED';
    expect(entries.some((one) => one.operationId === operationId)).toBe(isKept);
  });

  test('of a create names it before its cancel, and cancels nothing that it could not name', async () => {
    const operation = authorize();
    double.plan('confirm', 'reset before acting');
    const { reference } = await executed(provider, operation);
    const status = () => double.books.intents.get(reference ?? '')?.status;
    for (const fault of ['500 before acting', 'reset after acting'] as const) {
      double.plan('update', fault);
      expect((await provider.fence(questionNow(operation, reference))).outcome).toBe('UNKNOWN');
      expect(status()).toBe('requires_payment_method');
    }
    // Named and not canceled, as after the end of the process in between.
    double.received.length = 0;
    expect(await provider.fence(questionNow(operation, reference))).toEqual({ outcome: 'FENCED' });
    expect(steps()).toEqual(['read', 'update', 'cancel', 'read']);
    expect(status()).toBe('canceled');
  });

  test('keys live a day: after 23 hours nothing is concluded from one, after 25 from no trace', async () => {
    const { operation, authorizationReference } = await sold();
    const question = questionNow(followUp('REFUND', operation, { authorizationReference }));
    double.prune();
    for (const [ageHours, outcome] of [
      [23, 'UNKNOWN'],
      [24.9, 'UNKNOWN'],
      [25, 'FENCED'],
    ] as const) {
      nowMs = Date.parse(question.requestedAt) + ageHours * HOUR_MS;
      expect((await provider.fence(question)).outcome).toBe(outcome);
    }
    expect(steps()).not.toContain('update');
  });
});

describe('a void', () => {
  const CUT_OFF = '429 rate_limit';
  const voidOf = ({ operation, ...authorization }: Awaited<ReturnType<typeof authorized>>) =>
    followUp('VOID', operation, authorization);
  /** Named on its PaymentIntent, and its cancel was never sent. */
  const neverSent = async (payment: Awaited<ReturnType<typeof authorized>>) => {
    double.plan('cancel', CUT_OFF);
    const first = voidOf(payment);
    expect((await provider.execute(first, keepIt)).outcome).toBe('NOT_SENT');
    return first;
  };
  const voidsInLedger = async () =>
    (await provider.ledger(null, 100)).entries
      .filter(({ kind }) => kind === 'VOID')
      .map(({ operationId }) => operationId);
  const canceledAs = (reference: string, reason: string) =>
    double.books.dashboard.cancel(reference, reason);

  test('that was never sent is not what a later void carried out', async () => {
    const payment = await authorized();
    const first = await neverSent(payment);
    const second = voidOf(payment);
    expect((await provider.execute(second, keepIt)).outcome).toBe('APPROVED');
    expect(await provider.lookUp(questionNow(first))).toEqual({ outcome: 'NOT_FOUND' });
    expect(await provider.fence(questionNow(first))).toEqual({ outcome: 'FENCED' });
    expect((await provider.lookUp(questionNow(second))).outcome).toBe('APPROVED');
    expect(await voidsInLedger()).toEqual([second.operationId]);
  });

  test('that was carried out reads so, also where the name of an earlier one came late', async () => {
    const payment = await authorized();
    const own = voidOf(payment);
    double.plan('cancel', 'reset after acting');
    expect((await provider.execute(own, keepIt)).outcome).toBe('UNKNOWN');
    double.books.update(payment.reference, new Map([['metadata[voidOperationId]', 'op_earlier']]));
    expect(await askOnce(provider, questionNow(own))).toBe('APPROVED');
  });

  test.each(['automatic', 'expired'])(
    'that was never sent is not what Stripe itself canceled (%s)',
    async (reason) => {
      const payment = await authorized();
      const first = await neverSent(payment);
      canceledAs(payment.reference, reason);
      expect(await askOnce(provider, questionNow(first))).toBe('FENCED');
      expect(await provider.execute(voidOf(payment), keepIt)).toMatchObject({
        outcome: 'DECLINED',
        failureCode: 'TRANSACTION_NOT_PERMITTED',
      });
      expect(await voidsInLedger()).toEqual([]);
    },
  );

  test('of what was canceled in the Dashboard is approved: nothing else tells the log of it', async () => {
    const payment = await authorized();
    canceledAs(payment.reference, 'duplicate');
    const own = voidOf(payment);
    expect((await provider.execute(own, keepIt)).outcome).toBe('APPROVED');
    expect(await voidsInLedger()).toEqual([own.operationId]);
  });
});

describe('a look-up', () => {
  test('a refund on the second page of a hundred is found', async () => {
    const { operation, authorizationReference } = await sold(2000);
    const first = followUp('REFUND', operation, { authorizationReference, amount: 1 });
    await provider.execute(first, keepIt);
    for (let more = 0; more < 120; more += 1)
      double.books.dashboard.refund(authorizationReference, 1);
    expect((await provider.lookUp(questionNow(first))).outcome).toBe('APPROVED');
  });

  test("another operation's capture is not this one's", async () => {
    const { operation, authorizationReference } = await authorized();
    await provider.execute(followUp('CAPTURE', operation, { authorizationReference }), keepIt);
    const other = followUp('CAPTURE', operation, { authorizationReference });
    expect((await provider.lookUp(questionNow(other))).outcome).toBe('NOT_FOUND');
    expect((await provider.fence(questionNow(other))).outcome).toBe('FENCED');
  });

  test('a payment of another provider is not guessed about', async () => {
    const other = { ...questionNow(authorize()), reference: 'sim_1' };
    expect((await provider.lookUp(other)).outcome).toBe('UNKNOWN');
    expect((await provider.fence(other)).outcome).toBe('UNKNOWN');
  });
});

describe('the ledger', () => {
  test('names captures, voids and refunds by our operations, and leaves out what others made', async () => {
    const [captured, voided, refunded] = [await authorized(), await authorized(), await sold()];
    const changes = [
      followUp('CAPTURE', captured.operation, { ...captured, amount: 500 }),
      followUp('VOID', voided.operation, voided),
      followUp('REFUND', refunded.operation, { ...refunded, amount: 7 }),
    ];
    for (const change of changes) await provider.execute(change, keepIt);
    double.books.dashboard.open();
    const { entries, next } = await provider.ledger(null, 100);
    expect(next).toBeNull();
    expect(entries).toHaveLength(6);
    for (const { operationId, kind, amount, paymentId } of changes) {
      expect(entries).toContainEqual(
        expect.objectContaining({ operationId, kind, amount, paymentId, outcome: 'APPROVED' }),
      );
    }
  });

  test('has refunds from the Dashboard by their own ids; they do not make the log an older one', async () => {
    const { operation, authorizationReference } = await sold();
    const operationId = double.books.dashboard.refund(authorizationReference, 300);
    const { entries } = await provider.ledger(null, 100);
    expect(entries.at(-1)).toMatchObject({
      operationId,
      kind: 'REFUND',
      paymentId: operation.paymentId,
      amount: 300,
      outcome: 'APPROVED',
    });
    const end = await provider.ledgerEnd(null);
    expect(end.map((entry) => entry.operationId)).toEqual([operation.operationId]);
  });

  test('its end goes back past a second, an idle hour, and what is none of ours', async () => {
    const last = Math.floor(nowMs / 1_000) - 3_600;
    for (let made = 0; made < 2_000; made += 1)
      authorizedAt(made, last - Math.floor((2_000 - made) / 5));
    for (let made = 0; made < 700; made += 1) madeElsewhereAt(last + 100);
    const ids = (entries: { operationId: string }[]) =>
      entries.map(({ operationId }) => operationId);
    const end = await provider.ledgerEnd(null);
    expect(ids(end)).toEqual(Array.from({ length: 100 }, (_, made) => `op_${1_900 + made}`));
    expect(double.received.length).toBeLessThan(15);
    const later = await provider.ledgerEnd(end.at(-4)?.cursor ?? null);
    expect(ids(later)).toEqual(['op_1997', 'op_1998', 'op_1999']);
    expect(await provider.ledgerEnd(end.at(-1)?.cursor ?? null)).toEqual([]);
  });

  test('its end is searched for where 2,000 objects of others follow it; without search it is not found', async () => {
    const second = Math.floor(nowMs / 1_000);
    authorizedAt(0, second - 900);
    for (let made = 0; made < 2_050; made += 1) madeElsewhereAt(second - 800);
    expect(await provider.ledgerEnd(null)).toMatchObject([{ operationId: 'op_0' }]);
    double.endSearch();
    await expect(provider.ledgerEnd(null)).rejects.toThrow(LedgerEndNotFound);
    authorizedAt(1, second);
    expect(await provider.ledgerEnd(null)).toMatchObject([{ operationId: 'op_1' }]);
  });

  test('is read past objects of others in any form and of any size; one of ours that is broken ends it', async () => {
    const second = Math.floor(nowMs / 1_000);
    authorizedAt(0, second - 900);
    for (let made = 0; made < 100; made += 1) madeElsewhereAt(second - 800);
    const large = Object.fromEntries(
      Array.from({ length: 50 }, (_, name) => [`name_${name}`, 'x'.repeat(490)]),
    );
    for (const intent of double.books.intents.values())
      if (intent.metadata.operationId === undefined)
        Object.assign(intent, { metadata: large, capture_method: null });
    const { entries, next } = await provider.ledger(null, 100);
    expect(entries.map(({ operationId }) => operationId)).toEqual(['op_0']);
    expect(next).toBeNull();
    expect(await provider.ledgerEnd(null)).toMatchObject([{ operationId: 'op_0' }]);
    for (const intent of double.books.intents.values())
      if (intent.metadata.operationId === 'op_0') Object.assign(intent, { amount: null });
    await expect(provider.ledger(null, 100)).rejects.toThrow();
  });

  test.each([-10, 10])(
    'is read to its end by Stripe’s clock, with ours %p minutes off',
    async (minutes) => {
      const { operation, authorizationReference } = await sold();
      double.books.dispute(authorizationReference);
      const wrong = driverOver(double.url, { nowMs: () => nowMs + minutes * 60_000 });
      const ids = [operation.operationId];
      expect((await wrong.ledger(null, 100)).entries.map((one) => one.operationId)).toEqual(ids);
      expect((await wrong.ledgerEnd(null)).map((one) => one.operationId)).toEqual(ids);
      expect(await wrong.disputes()).toHaveLength(1);
      await wrong.close();
    },
  );

  test('waits where Stripe limits its reads or fails, and goes on', async () => {
    authorizedAt(0, Math.floor(nowMs / 1_000) - 900);
    for (const fault of ['429 rate_limit', '500 before acting'] as const)
      double.plan('list', fault);
    const { entries } = await provider.ledger(null, 100);
    expect(entries.map(({ operationId }) => operationId)).toEqual(['op_0']);
    for (let failed = 0; failed < 12; failed += 1) double.plan('list', '403');
    await expect(provider.ledger(null, 100)).rejects.toThrow('status 403');
  });

  test('its end has the latest of payments and refunds, each at its own time', async () => {
    const second = Math.floor(nowMs / 1_000);
    const { operation, authorizationReference } = await sold();
    Object.assign(double.books.intents.get(authorizationReference) ?? {}, {
      created: second - 9_000,
    });
    for (let made = 0; made < 150; made += 1) authorizedAt(made, second - 8_000 + made);
    for (const [at, created] of [second - 8_500, second - 7_900].entries()) {
      const refund = followUp('REFUND', operation, { authorizationReference, amount: 1 + at });
      await provider.execute(refund, keepIt);
      Object.assign(double.books.refunds[at] ?? {}, { created });
    }
    const end = await provider.ledgerEnd(null);
    expect(end).toHaveLength(100);
    expect(end.filter(({ kind }) => kind === 'REFUND')).toMatchObject([{ amount: 2 }]);
    const seconds = end.map(({ cursor }) => Number(cursor.split('.')[0]));
    expect(seconds).toEqual([...seconds].sort((a, b) => a - b));
  });

  test('of more than a window is read in order, each entry once, with few of them in memory', async () => {
    const first = Math.floor(nowMs / 1_000) - 100_000;
    for (let made = 0; made < 1_200; made += 1) authorizedAt(made, first + made * 40);
    const sinceOf = (made: number) => new Date((first + made * 40) * 1_000).toISOString();
    // Of a time to come there is none, and the next one is read as if it had not been.
    expect((await provider.ledger(null, 100, sinceOf(2_600))).entries).toEqual([]);
    const seen: string[] = [];
    let after: string | null | undefined;
    while (after !== null) {
      const page = await provider.ledger(after ?? null, 100);
      seen.push(...page.entries.map(({ operationId }) => operationId));
      after = page.next;
    }
    expect(seen).toEqual(Array.from({ length: 1_200 }, (_, made) => `op_${made}`));
    expect(double.received.length).toBeLessThan(150);
    const end = await provider.ledgerEnd(null);
    expect(end.at(-1)?.operationId).toBe('op_1199');
    expect(end.length).toBeLessThanOrEqual(100);
    for (const made of [1_100, 1_190]) {
      const { entries } = await provider.ledger(null, 100, sinceOf(made));
      expect(entries.map(({ operationId }) => operationId)).toEqual(seen.slice(made));
    }
  });
});

test.each([
  ['Example Shop', 'Example Sh'],
  [`<A>'"*\\ b`, 'A b'],
  ['Café ™', 'Cafe TM'],
  ['1234567', undefined],
  ['日本', undefined],
  [undefined, undefined],
])('the descriptor %p is sent as %p', (descriptor, suffix) => {
  expect(suffixOf(descriptor)).toBe(suffix);
});
