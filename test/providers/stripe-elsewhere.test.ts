/** gaps §15, §28: captures, cancels and refunds of Stripe's Dashboard are looked for, as a reason to ask. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { Provider } from '../../providers/port.ts';
import { authorize, followUp } from '../support/provider-operations.ts';
import { createBooks } from '../support/stripe-double/books.ts';
import { type StripeDouble, stripeDouble } from '../support/stripe-double/server.ts';
import { approvedBy, driverOver, keepIt, TEST_ACCOUNT } from '../support/stripe-fault-rounds.ts';

const WEEK_MS = 7 * 86_400_000;
const MINUTE_MS = 60_000;
const clock = { aheadMs: 0 };
const nowMs = (): number => Date.now() + clock.aheadMs;

let double: StripeDouble;
let provider: Provider;
beforeEach(async () => {
  clock.aheadMs = 0;
  double = await stripeDouble(nowMs);
  provider = driverOver(double.url, { nowMs });
});
afterEach(async () => {
  await provider.close();
  await double.close();
});

const made = (paymentId: string, parts: Parameters<typeof authorize>[1] = {}) =>
  approvedBy(provider, authorize(undefined, { paymentId, ...parts }));
const ended = async (sinceMs = nowMs() - MINUTE_MS) => {
  const { made, ...said } = await provider.madeElsewhere(sinceMs);
  return [said, made.map(({ paymentId }) => paymentId).toSorted()];
};
const FOUND = { outcome: 'FOUND' };

test('an authorization of a week ago that was captured or canceled in the Dashboard a minute ago', async () => {
  const [captured, partly, canceled] = [
    await made('pay_1'),
    await made('pay_2'),
    await made('pay_3'),
  ];
  clock.aheadMs = WEEK_MS - 3_600_000;
  expect(await ended()).toEqual([FOUND, []]);
  double.books.dashboard.capture(captured.reference);
  double.books.dashboard.capture(partly.reference, 1);
  double.books.dashboard.cancel(canceled.reference);
  expect(await ended()).toEqual([FOUND, ['pay_1', 'pay_2', 'pay_3']]);
  clock.aheadMs = WEEK_MS + 3_600_000;
  expect(await ended()).toEqual([FOUND, []]);
});

test('neither a sale, nor what was captured here, nor what others made', async () => {
  await made('pay_sale', { kind: 'SALE' });
  const { operation, reference } = await made('pay_ours');
  const capture = followUp('CAPTURE', operation, { authorizationReference: reference });
  expect((await provider.execute(capture, keepIt)).outcome).toBe('APPROVED');
  const { id } = double.books.dashboard.open();
  double.books.cancel(id, new Map());
  expect(await ended()).toEqual([FOUND, []]);
});

test('a refund in the Dashboard of a sale of a year ago, but none that was made here', async () => {
  const { operation, reference } = await made('pay_1', { kind: 'SALE' });
  const refund = followUp('REFUND', operation, { amount: 5, authorizationReference: reference });
  clock.aheadMs = 52 * WEEK_MS;
  expect((await provider.execute(refund, keepIt)).outcome).toBe('APPROVED');
  expect(await ended()).toEqual([FOUND, []]);
  double.books.dashboard.refund(reference, 7);
  const refundId = double.books.refunds.find(({ amount }) => amount === 7)?.id;
  expect((await provider.madeElsewhere(nowMs() - MINUTE_MS)).made).toEqual([
    { paymentId: 'pay_1', refundId },
  ]);
});

test('an event that is listed minutes after its time is not lost', async () => {
  const { reference } = await made('pay_late');
  double.books.dashboard.capture(reference);
  expect(await ended(nowMs() + 4 * MINUTE_MS)).toEqual([FOUND, ['pay_late']]);
});

test('beyond a page, newest first', async () => {
  const all: string[] = [];
  const { books } = double;
  const paid = new Map([['payment_method', 'pm_card_visa']]);
  for (let n = 0; n < 230; n += 1) {
    const paymentId = `pay_${String(n).padStart(3, '0')}`;
    const form = { amount: '500', capture_method: 'manual', 'metadata[paymentId]': paymentId };
    const { id } = books.open(new Map(Object.entries(form))).body as { id: string };
    books.confirm(id, paid);
    books.dashboard.capture(id);
    all.push(paymentId);
  }
  expect(await ended()).toEqual([FOUND, all]);
});

test('a key without the permission is named, and the other accounts are looked at', async () => {
  await provider.close();
  const own = { secretKey: 'sk_test_of_its_own', name: 'the key of m_keyed' };
  const accounts = { installation: TEST_ACCOUNT, merchants: new Map([['m_keyed', own]]) };
  provider = driverOver(double.url, { accounts });
  double.openAccount(own.secretKey, createBooks());
  const { reference } = await made('pay_shared');
  double.books.dashboard.cancel(reference);
  double.withhold('/v1/events', own.secretKey);
  const barred = { outcome: 'UNKNOWN', reason: 'forbidden', account: own.name };
  expect(await ended()).toEqual([barred, ['pay_shared']]);
  double.permitAll();
  expect(await ended()).toEqual([FOUND, ['pay_shared']]);
});

test('what is no list of events says nothing', async () => {
  double.plan('list', 'HTML');
  expect(await ended()).toEqual([{ outcome: 'UNKNOWN', reason: 'malformed' }, []]);
});
