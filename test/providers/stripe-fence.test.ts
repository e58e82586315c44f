/**
 * The fence against what Stripe does meanwhile. A late request, a used key, a suspended machine, a lost
 * reference: stripe-rules.test.ts; a call beside its fence: fencing.cases.ts.
 */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { Provider, ProviderOperation } from '../../providers/port.ts';
import { authorize, followUp } from '../support/provider-operations.ts';
import { createBooks } from '../support/stripe-double/books.ts';
import { type StripeDouble, stripeDouble } from '../support/stripe-double/server.ts';
import {
  askOnce,
  driverOver,
  keepIt,
  prepared,
  questionOf,
  STEPS_OF,
  TEST_ACCOUNT,
  timesMovedIn,
} from '../support/stripe-fault-rounds.ts';
import { until } from '../support/until.ts';

const HOUR_MS = 3_600_000;
let double: StripeDouble;
let provider: Provider;
let aheadMs: number;

beforeEach(async () => {
  aheadMs = 0;
  double = await stripeDouble();
  provider = driverOver(double.url, { nowMs: () => Date.now() + aheadMs });
});
afterEach(async () => {
  await provider.close();
  await double.close();
});

const moved = (operation: ProviderOperation): number => timesMovedIn(double.books.all(), operation);

test.each(['SALE', 'AUTHORIZE', 'CAPTURE', 'VOID', 'REFUND'] as const)(
  'a %s that Stripe still works on is unknown until it acted, and is found then',
  async (kind) => {
    const operation = await prepared(provider, kind);
    const act = double.hold();
    let reference: string | undefined;
    const call = provider.execute(operation, async (opened) => {
      reference = opened;
    });
    const moving = STEPS_OF[kind].at(-1);
    await until('it is at Stripe', () => double.received.some(({ step }) => step === moving));
    const question = questionOf(operation, reference);
    expect((await provider.fence(question)).outcome).toBe('UNKNOWN');
    act();
    expect((await call).outcome).toBe('APPROVED');
    expect((await provider.fence(question)).outcome).toBe('APPROVED');
    expect(moved(operation)).toBe(1);
  },
);

test('an update that takes the key and gets a 500 is replayed: unknown for 25 hours, then fenced', async () => {
  const refund = await prepared(provider, 'REFUND');
  const question = questionOf(refund);
  double.plan('update', '500 before acting');
  for (const [hours, outcome] of [
    [0, 'UNKNOWN'],
    [22, 'UNKNOWN'],
    [24.5, 'UNKNOWN'],
    [26, 'FENCED'],
  ] as const) {
    aheadMs = hours * HOUR_MS;
    expect([hours, (await provider.fence(question)).outcome]).toEqual([hours, outcome]);
  }
});

test('with a clock four hours ahead a declined refund may end as fenced: no money either way', async () => {
  const refund = { ...(await prepared(provider, 'REFUND')), amount: 2001 };
  double.plan('refund', 'reset after acting');
  expect((await provider.execute(refund, keepIt)).outcome).toBe('UNKNOWN');
  const question = questionOf(refund);
  aheadMs = 22 * HOUR_MS;
  expect(await provider.fence(question)).toMatchObject({
    outcome: 'DECLINED',
    failureCode: 'LIMIT_EXCEEDED',
  });
  aheadMs += 4 * HOUR_MS;
  expect((await provider.fence(question)).outcome).toBe('FENCED');
  expect(double.books.refunds).toEqual([]);
});

test('a replay in the moment in which Stripe prunes the key carries the refund out: it is found', async () => {
  const refund = { ...(await prepared(provider, 'REFUND')), amount: 2001 };
  double.plan('refund', 'reset after acting');
  await provider.execute(refund, keepIt);
  // The merchant's balance allows it meanwhile.
  const [intent] = double.books.intents.values();
  Object.assign(intent ?? {}, { amount_received: 2001 });
  const { received } = double;
  received.push = (...requests) => {
    if (requests.some(({ step }) => step === 'refund')) double.prune();
    return Array.prototype.push.apply(received, requests);
  };
  const question = questionOf(refund);
  expect((await provider.fence(question)).outcome).toBe('UNKNOWN');
  expect(await askOnce(provider, question)).toBe('APPROVED');
  expect(moved(refund)).toBe(1);
});

test('a request of another form under the key, as of an earlier version, is never sent again: unknown', async () => {
  const refund = { ...(await prepared(provider, 'REFUND')), amount: 2001 };
  double.plan('refund', 'reset after acting');
  await provider.execute(refund, keepIt);
  const question = questionOf({ ...refund, paymentId: 'pay_in_another_form' });
  expect((await provider.fence(question)).outcome).toBe('UNKNOWN');
  expect(double.books.refunds).toEqual([]);
});

test('an account above its rate: nothing is sent or fenced there, and other accounts go on', async () => {
  const merchants = new Map([
    ['m_limited', { ...TEST_ACCOUNT, account: 'acct_1', name: 'acct_1' }],
  ]);
  const several = driverOver(double.url, {
    accounts: { installation: TEST_ACCOUNT, merchants },
  });
  const books = double.openAccount('acct_1', createBooks());
  const sale = authorize(undefined, { kind: 'SALE', merchantId: 'm_limited' });
  let reference = '';
  const { outcome } = await several.execute(sale, async (opened) => {
    reference = opened;
  });
  expect(outcome).toBe('APPROVED');
  const refund = followUp('REFUND', sale, { authorizationReference: reference });
  double.limitRates({ endpoint: 0, all: 0 }, 'acct_1');
  expect(await several.execute(refund, keepIt)).toEqual({
    outcome: 'NOT_SENT',
    byProvider: true,
    reason: 'rate_limited',
    account: 'acct_1',
  });
  expect(await several.fence(questionOf(refund))).toMatchObject({
    outcome: 'UNKNOWN',
    reason: 'rate_limited',
  });
  expect((await several.execute(authorize(), keepIt)).outcome).toBe('APPROVED');
  double.limitRates({ endpoint: 25, all: 100 }, 'acct_1');
  expect((await several.fence(questionOf(refund))).outcome).toBe('FENCED');
  expect(books.refunds).toEqual([]);
  await several.close();
});
