/** gaps §15: what is done in Stripe's Dashboard and told by no notice is recorded by the schedule's next look. */
import { afterAll, expect, test } from '@jest/globals';
import { lookAtEngines } from '../../cli/doctor-engines.ts';
import { configOf, idOf, signToken } from '../support/service-in-process.ts';
import type { Intent } from '../support/stripe-double/books.ts';
import { openOverStripe } from '../support/stripe-service.ts';
import { until } from '../support/until.ts';

/** Longer than the window of a comparison. */
const AGE_S = 60 * 86_400;
const over = await openOverStripe({
  STRIPE_SECRET_KEY: 'rk_test_of_the_service',
  STRIPE_WEBHOOK_SECRET: '',
  RECOVERY_DELAYS_MS: '',
  RECONCILE_INTERVAL_MS: '2000',
});
const { double, service, settings, intentOf } = over;
afterAll(() => over[Symbol.asyncDispose]());

/** At Stripe, so that no comparison of a window lists it. */
const authorizedLongAgo = async (): Promise<{ paymentId: string; intent: Intent }> => {
  const paymentId = idOf(await service.create());
  const intent = intentOf(paymentId);
  intent.created -= AGE_S;
  return { paymentId, intent };
};
const shown = async (paymentId: string) => {
  const { status, capturedAmount, refundedAmount } = (await service.get(paymentId)).json;
  return [status, capturedAmount, refundedAmount];
};
const untilShown = async (paymentId: string, expected: unknown[]): Promise<void> => {
  const isShown = async () => String(await shown(paymentId)) === String(expected);
  await until(`${paymentId} shows ${expected}`, isShown);
};

const attention = async (): Promise<{ reason: string; what: string }[]> => {
  const token = await signToken({ merchant_id: '*', sub: 'operator', scope: 'ops:admin' });
  const { json } = await service.ask('GET', '/ops/v1/attention', undefined, { token });
  return (json as unknown as { items: { reason: string; what: string }[] }).items;
};

test('without the permission for events a person is told, the rest is looked at, and what was missed comes later', async () => {
  const { paymentId, intent } = await authorizedLongAgo();
  const { paymentId: sold, intent: sale } = await authorizedLongAgo();
  expect((await service.change('capture', sold)).status).toBe(200);
  double.withhold('/v1/events');
  double.books.dashboard.capture(intent.id);
  double.books.dashboard.refund(sale.id, 500);
  await untilShown(sold, ['CAPTURED', 2500, 500]);
  await until('a person is told', async () => (await attention()).length > 0);
  expect(await shown(paymentId)).toEqual(['AUTHORIZED', 0, 0]);
  expect(await attention()).toMatchObject([
    {
      reason: 'PROVIDER_MISCONFIGURED',
      subject: 'provider',
      what: 'The provider lets the key read no events: a capture or cancel made there without a notice is found late.',
      next: 'payments doctor',
    },
  ]);
  const provider = async () =>
    (await lookAtEngines(configOf(settings))).find(({ engine }) => engine === 'provider');
  expect(await provider()).toMatchObject({
    fault: true,
    cause: expect.stringContaining('events cannot be read: forbidden'),
  });
  // An operation that is carried out says nothing of that permission.
  expect((await service.create()).status).toBe(200);
  expect(await attention()).toHaveLength(1);
  double.permitAll();
  await untilShown(paymentId, ['CAPTURED', 2500, 0]);
  expect(await provider()).toMatchObject({ fault: false });
  await until('no person is told any more', async () => (await attention()).length === 0);
});
