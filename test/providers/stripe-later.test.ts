/**
 * What the driver of Stripe says has become of a payment, by what Stripe's objects are at that moment. Each
 * state that they may have: stripe-sdk.test.ts; what the service makes of it: test/providers/stripe-webhooks.test.ts.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { PaymentQuestion, Provider } from '../../providers/port.ts';
import { authorize, followUp } from '../support/provider-operations.ts';
import { type StripeDouble, stripeDouble } from '../support/stripe-double/server.ts';
import { approvedBy, driverOver, keepIt } from '../support/stripe-fault-rounds.ts';

let double: StripeDouble;
let provider: Provider;
beforeAll(async () => {
  double = await stripeDouble();
  provider = driverOver(double.url);
});
afterAll(async () => {
  await provider.close();
  await double.close();
});

/** A sale of 20.00 USD, or its authorization, and the question about it. */
const sold = async (kind: 'SALE' | 'AUTHORIZE' = 'SALE') => {
  const { operation, reference } = await approvedBy(provider, authorize(undefined, { kind }));
  const { paymentId, merchantId, amount, currency, operationId } = operation;
  const question: PaymentQuestion = {
    ...{ paymentId, merchantId, amount, currency },
    authorizationId: operationId,
    authorizationReference: reference,
    refunds: [],
    observed: [],
  };
  return { operation, reference, question };
};
const results = async (question: PaymentQuestion) => {
  const found = await provider.laterResults(question);
  return found.outcome === 'FOUND' ? found.results : found;
};

test('a capture or cancel in the Dashboard is in the ledger under the id of the PaymentIntent', async () => {
  const [captured, canceled] = [await sold('AUTHORIZE'), await sold('AUTHORIZE')];
  double.books.dashboard.capture(captured.reference, 1200);
  double.books.dashboard.cancel(canceled.reference);
  const { entries } = await provider.ledger(null, 1_000);
  const changes = ({ reference }: { reference: string }) =>
    entries.filter(({ providerReference: of, kind }) => of === reference && kind !== 'AUTHORIZE');
  expect(changes(captured)).toMatchObject([
    { operationId: captured.reference, kind: 'CAPTURE', outcome: 'APPROVED', amount: 1200 },
  ]);
  expect(changes(canceled)).toMatchObject([
    { operationId: canceled.reference, kind: 'VOID', outcome: 'APPROVED', amount: 2000 },
  ]);
});

test('what this service captured and refunded is not observed', async () => {
  const { operation, reference, question } = await sold('AUTHORIZE');
  const capture = followUp('CAPTURE', operation, { authorizationReference: reference });
  const refund = followUp('REFUND', operation, { authorizationReference: reference, amount: 300 });
  for (const own of [capture, refund])
    expect(await provider.execute(own, keepIt)).toMatchObject({ outcome: 'APPROVED' });
  const refunds = [{ operationId: refund.operationId, amount: 300 }];
  expect(await results({ ...question, refunds })).toEqual([]);
});

test('a refund in the Dashboard of exactly what a capture of part left is observed, and in the ledger', async () => {
  const { reference, question } = await sold('AUTHORIZE');
  double.books.capture(
    reference,
    new Map([
      ['amount_to_capture', '1000'],
      ['metadata[captureOperationId]', 'OP_capture'],
    ]),
  );
  const refundId = double.books.dashboard.refund(reference, 1000);
  expect(await results(question)).toEqual([{ kind: 'REFUND_OBSERVED', refundId, amount: 1000 }]);
  const { entries } = await provider.ledger(null, 1_000);
  expect(entries).toContainEqual(
    expect.objectContaining({ kind: 'REFUND', operationId: refundId, amount: 1000 }),
  );
});

describe('disputes', () => {
  test('a charge that Stripe calls undisputed needs no permission to read disputes', async () => {
    const { question } = await sold();
    const before = double.received.length;
    expect(await results(question)).toEqual([]);
    const paths = double.received.slice(before).map(({ path }) => path);
    expect(paths.filter((path) => path.startsWith('/v1/disputes'))).toEqual([]);
  });

  test('in another currency nothing is concluded', async () => {
    const { reference, question } = await sold();
    double.books.dispute(reference, { currency: 'eur' });
    expect(await results(question)).toEqual({ outcome: 'UNKNOWN', reason: 'mismatch' });
  });
});

test.each(['403', '500 before acting', 'cut JSON'] as const)(
  'a list that is %s says nothing, also of what was read before it',
  async (fault) => {
    const { reference, question } = await sold();
    double.books.dashboard.refund(reference, 500);
    double.plan('list', fault);
    expect(await results(question)).toMatchObject({ outcome: 'UNKNOWN' });
  },
);

test('a PaymentIntent names its payment, and one that was made elsewhere none', async () => {
  const { reference, question } = await sold();
  expect(await provider.paymentOf(reference, {})).toEqual({
    outcome: 'FOUND',
    paymentId: question.paymentId,
  });
  for (const other of [double.books.dashboard.open().id, 'pi_nobody', '../x']) {
    expect(await provider.paymentOf(other, {})).toEqual({ outcome: 'NOT_FOUND' });
  }
  double.plan('read', '500 before acting');
  expect(await provider.paymentOf(reference, {})).toMatchObject({ outcome: 'UNKNOWN' });
});
