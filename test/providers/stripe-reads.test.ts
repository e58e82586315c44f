/** Notices cost reads at Stripe, whose limits the money's own requests need (docs/providers/stripe.md). */
import { afterAll, beforeEach, describe, expect, test } from '@jest/globals';
import { shareOf } from '../support/long-run-share.ts';
import { randomOf } from '../support/random.ts';
import { idOf } from '../support/service-in-process.ts';
import type { Intent, StripeRefund } from '../support/stripe-double/books.ts';
import { openOverStripe } from '../support/stripe-service.ts';

const over = await openOverStripe({ STRIPE_CREATES_PER_SECOND: '' });
const { double, service, intentOf } = over;
afterAll(() => over[Symbol.asyncDispose]());

const deliver = async ({ type, object }: { type: string; object: object }) =>
  (await over.deliver(JSON.stringify({ id: 'evt_1', type, data: { object } }))).status;
const refundInDashboard = ({ id }: Intent, amount: number): void =>
  void double.books.dashboard.refund(id, amount);

/** As Stripe shows it with a notice: the charge has its PaymentIntent's metadata. */
const chargeOf = ({ id, metadata, latest_charge: charge }: Intent) => ({
  ...charge,
  id: 'ch_1',
  payment_intent: id,
  metadata,
});
/** Requests about one payment: a comparison with the ledger lists by time. */
const reads = (): number =>
  double.received.filter(({ method, params }) => method === 'GET' && !params.has('created[lt]'))
    .length;

describe('an authorization, its capture and a refund with the notices that the page names', () => {
  const story = async (tell: (type: string, object: object) => Promise<void>) => {
    const paymentId = idOf(await service.create());
    const intent = intentOf(paymentId);
    await tell('payment_intent.amount_capturable_updated', { ...intent });
    expect((await service.change('capture', paymentId)).json.status).toBe('CAPTURED');
    await tell('payment_intent.succeeded', { ...intent });
    const refunded = await service.change('refund', paymentId, { refundAmount: 500 });
    expect(refunded.json.refundedAmount).toBe(500);
    const made = double.books.refunds.at(-1) as StripeRefund;
    await tell('charge.refunded', chargeOf(intent));
    await tell('refund.updated', { ...made });
    return paymentId;
  };

  beforeEach(() => {
    double.received.length = 0;
  });

  test('cost six reads at most, each at its time', async () => {
    await story(async (type, object) => expect(await deliver({ type, object })).toBe(200));
    expect(reads()).toBeLessThanOrEqual(6);
  });

  test.each(shareOf([1, 2, 3], 1))(
    'also when each comes twice and in any order (%p)',
    async (seed) => {
      const notices: { type: string; object: object; order: number }[] = [];
      const { between } = randomOf(seed);
      const paymentId = await story(async (type, object) => {
        for (let time = 0; time < 2; time += 1)
          notices.push({ type, object, order: between(0, 1_000) });
      });
      const { text } = await service.get(paymentId);
      for (const notice of notices.sort((a, b) => a.order - b.order))
        expect(await deliver(notice)).toBe(200);
      expect(notices).toHaveLength(8);
      expect(reads()).toBeLessThanOrEqual(6);
      expect((await service.get(paymentId)).text).toBe(text);
    },
  );

  test('but what only Stripe knows is asked for: a bounce, and what the Dashboard did', async () => {
    const paymentId = await story(async () => undefined);
    const made = double.books.refunds.at(-1) as StripeRefund;
    Object.assign(made, { status: 'failed' });
    expect(await deliver({ type: 'refund.updated', object: { ...made } })).toBe(200);
    expect((await service.get(paymentId)).json.refundedAmount).toBe(0);
    const intent = intentOf(paymentId);
    refundInDashboard(intent, 700);
    expect(await deliver({ type: 'charge.refunded', object: chargeOf(intent) })).toBe(200);
    expect((await service.get(paymentId)).json.refundedAmount).toBe(700);
  });
});
