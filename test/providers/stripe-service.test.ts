/** The service with PROVIDER=stripe over a double of Stripe. What it makes of lost responses: stripe-dashboard-day.test.ts. */
import { afterAll, describe, expect, test } from '@jest/globals';
import { PAYMENTS, payment, signToken, storedTexts } from '../support/service-in-process.ts';
import { openOverStripe, reconcile, STRIPE_KEY } from '../support/stripe-service.ts';

const over = await openOverStripe();
const { double, service, intentOf } = over;
afterAll(() => over[Symbol.asyncDispose]());

const byToken = (token: string) => ({
  paymentMethod: { type: 'CARD', card: { token, holderName: 'Jane Doe' } },
});
describe('PROVIDER=stripe', () => {
  test('gaps §14: a ConfirmationToken of a checkout in the browser, of a card that Link holds as well', async () => {
    const token = double.books.makeToken('ctoken', 'pm_card_visa');
    const sale = await service.create({ captureNow: true, ...byToken(token) });
    expect(sale).toMatchObject({
      status: 200,
      json: { status: 'CAPTURED', paymentMethod: { card: { last4: '4242', brand: 'VISA' } } },
    });
    expect(double.received.findLast(({ step }) => step === 'confirm')?.params).toEqual(
      new Map([
        ['confirmation_token', token],
        ['error_on_requires_action', 'true'],
        ['expand[0]', 'latest_charge'],
      ]),
    );
  });

  test.each(['pm', 'ctoken'] as const)(
    'gaps §14: a saved card (%s_…) is charged with its customer, who is named in nothing that is kept',
    async (kind) => {
      const customer = `cus_Saved${kind}`;
      const token = double.books.makeToken(kind, 'pm_card_mastercard', customer);
      const { json, text } = await service.create(byToken(token));
      expect(json.status).toBe('AUTHORIZED');
      const kept = { status: 'requires_capture', customer };
      expect(intentOf(json.paymentId)).toMatchObject(kept);
      const texts = [text, ...storedTexts(service)];
      expect(texts.slice(1).some((one) => one.includes(json.paymentId))).toBe(true);
      expect(texts.filter((one) => one.includes(token) || one.includes(customer))).toEqual([]);
    },
  );

  test.each([
    ['pm', 'pm_card_visa_chargeDeclined', null, 402, 422],
    ['ctoken', 'pm_card_visa', 'cus_Again', 200, 422],
    ['pm', 'pm_card_visa', 'cus_Again', 200, 200],
  ] as const)(
    'gaps §14: %s_… of %s, customer %s: first %i, then %i',
    async (kind, card, customer, first, then) => {
      const token = double.books.makeToken(kind, card, customer);
      expect((await service.create(byToken(token))).status).toBe(first);
      expect((await service.create(byToken(token))).status).toBe(then);
    },
  );

  test('gaps §14: a token that can pay no more is 422, nothing is charged, and the key takes another', async () => {
    const pay = (token: string) =>
      service.ask('POST', PAYMENTS, payment(byToken(token)), { key: 'used' });
    const token = double.books.makeToken('pm', 'pm_card_visa');
    expect((await service.create(byToken(token))).json.status).toBe('AUTHORIZED');
    const used = await pay(token);
    const [named, why] = used.json.details as string[];
    expect([used.status, used.json.error, why]).toEqual([
      422,
      'BUSINESS_RULE_VIOLATION',
      'the token was used already or belongs to a customer',
    ]);
    const id = String(named).replace('paymentId ', '');
    expect((await service.get(id)).json.status).toBe('FAILED');
    const other = await pay('pm_card_mastercard');
    expect([other.status, other.json.status]).toEqual([200, 'AUTHORIZED']);
    expect(await reconcile(service)).toMatchObject({ ok: true });
  });

  test('a raw number goes with the name, the e-mail and the billing address of the request', async () => {
    const consumer = { firstName: 'Jane', email: 'jane.doe+shop@example.com' };
    const billing = { address: { street: '1 Main St', zip: '83702', country: 'US' } };
    const fields = { number: '4000000000000077', consumer, billing, merchantReference: 'order-8' };
    expect((await service.create(fields)).status).toBe(200);
    const sent = (wanted: string) =>
      Object.fromEntries(double.received.findLast(({ step }) => step === wanted)?.params ?? []);
    expect(sent('method')).toMatchObject({
      'billing_details[name]': 'Ada Lovelace',
      'billing_details[email]': 'jane.doe+shop@example.com',
      'billing_details[address][line1]': '1 Main St',
      'billing_details[address][postal_code]': '83702',
    });
    expect(sent('open')).toMatchObject({ 'metadata[merchantReference]': 'order-8' });
  });

  test('readiness says that no money moves; the key is shown nowhere', async () => {
    const ready = await service.ask('GET', '/health/ready');
    expect(ready.json).toMatchObject({
      engines: { provider: { state: 'up', stripe: 'test', simulated: false } },
    });
    const token = await signToken({ merchant_id: '*', sub: 'operator', scope: 'ops:admin' });
    const settings = await service.ask('GET', '/ops/v1/settings', undefined, { token });
    expect(settings.status).toBe(200);
    expect(settings.text).not.toContain(STRIPE_KEY);
  });

  test('gaps §15: a refund that bounced is recorded by a comparison where no notice told it', async () => {
    const { paymentId } = (await service.create({ captureNow: true })).json;
    const refunded = async () => (await service.get(paymentId)).json.refundedAmount;
    expect((await service.change('refund', paymentId, { refundAmount: 300 })).status).toBe(200);
    expect(await refunded()).toBe(300);
    const made = double.books.refunds.find(({ metadata }) => metadata.paymentId === paymentId);
    Object.assign(made ?? {}, { status: 'failed', failure_reason: 'declined' });
    expect(await reconcile(service)).toMatchObject({ ok: true, differences: [] });
    expect(await refunded()).toBe(0);
  });

  test('what began since a time: Stripe is asked about a capture that it lists earlier', async () => {
    const { paymentId } = (await service.create()).json;
    const intent = intentOf(paymentId);
    intent.created -= 3600;
    const since = new Date().toISOString();
    await service.change('capture', paymentId, { captureAmount: 500 });
    const compared = await reconcile(service, `?since=${since}`);
    expect(compared).toMatchObject({ ok: true, operations: 1 });
    intent.status = 'canceled';
    expect(await reconcile(service, `?since=${since}`)).toMatchObject({
      ok: false,
      differences: [{ kind: 'MISSING_AT_PROVIDER', paymentId }],
    });
    intent.status = 'succeeded';
  });
});
