/** `POST /webhooks/stripe`: only what Stripe signed is heard, and all it does is to make us ask now. */
import { mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { expectError, idOf, locatedId, signToken } from '../support/service-in-process.ts';
import { createBooks } from '../support/stripe-double/books.ts';
import { openOverStripe, reconcile, STRIPE_SECRET } from '../support/stripe-service.ts';
import { stripeSignature } from '../support/stripe-signature.ts';
import { until } from '../support/until.ts';

const OLD = 'whsec_the_old_secret';
const OWN_SECRET = 'whsec_of_the_merchant_itself';
const OWN_KEY = 'sk_test_of_the_merchant_itself';
const folder = mkdtempDisposableSync(join(tmpdir(), 'payments-stripe-'));
const secretFile = (name: string, content: string): string => {
  const path = join(folder.path, name);
  writeFileSync(path, content, { mode: 0o600 });
  return path;
};
const merchants = {
  m_connected: { stripeAccount: 'acct_1' },
  m_keyed: {
    stripeSecretKeyFile: secretFile('key', OWN_KEY),
    stripeWebhookSecretFile: secretFile('webhook', OWN_SECRET),
  },
};
const over = await openOverStripe({
  STRIPE_WEBHOOK_SECRET: `${STRIPE_SECRET}, ${OLD}`,
  MERCHANTS_FILE: secretFile('merchants.json', JSON.stringify(merchants)),
});
const { double, service, intentOf } = over;
const { dashboard } = double.books;
afterAll(async () => {
  await over[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

/** How many requests about a payment Stripe has received; the ledger is read beside them. */
const questions = (): number => double.received.filter(({ step }) => step !== 'list').length;
const signed = (body: string, secret = STRIPE_SECRET, atMs = Date.now()): string =>
  stripeSignature(body, secret, atMs);
const statusTo = async (body: string, signature?: string | null) =>
  (await over.deliver(body, signature)).status;

const typeOf = ({ object, status }: { object?: string; status?: string }): string =>
  object === 'payment_intent' ? `payment_intent.${status}` : 'any';
const noticeOf = (object: object, parts: object = {}): string =>
  JSON.stringify({ id: 'evt_1', type: typeOf(object), data: { object }, ...parts });
/** It says that the payment failed, whatever became of it. */
const noticeAbout = (paymentId: string, status = 'payment_failed'): string =>
  noticeOf({ object: 'payment_intent', status, metadata: { paymentId } });
/** Delivered twice. */
const tell = async (object: object, parts?: object, secret = STRIPE_SECRET) => {
  const body = noticeOf(object, parts);
  return [await statusTo(body, signed(body, secret)), await statusTo(body, signed(body, secret))];
};

const sold = async (captureNow = true, token?: string, books = double.books) => {
  const paymentId = idOf(
    await service.create({ captureNow }, token === undefined ? {} : { token }),
  );
  return { paymentId, intent: intentOf(paymentId, books) };
};
const authorized = () => sold(false);
const shown = async (paymentId: string, token?: string) =>
  (await service.get(paymentId, token === undefined ? {} : { token })).json;
const differencesOf = async (id: string) =>
  (await reconcile(service, '?all=true')).differences.filter(({ paymentId }) => paymentId === id);
const lastRefundIs = (parts: object) => Object.assign(double.books.refunds.at(-1) ?? {}, parts);

describe('what is heard', () => {
  const ABOUT_NOBODY = noticeAbout('pay_01ARZ3NDEKTSV4RRFFQ69G5FAV');

  test.each<[string, (body: string) => string | null]>([
    ['no signature', () => null],
    ['a signature by another secret', (body) => signed(body, 'whsec_of_a_forger')],
    ['a signature of another body', () => signed('{}')],
    ['one of six minutes ago', (body) => signed(body, STRIPE_SECRET, Date.now() - 360_000)],
    ['one of six minutes ahead', (body) => signed(body, STRIPE_SECRET, Date.now() + 360_000)],
    ['another scheme', (body) => signed(body).replace('v1=', 'v0=')],
    ['two times', (body) => `t=1,${signed(body)}`],
    ['a cut one', (body) => signed(body).slice(0, -1)],
  ])('%s is 401, and nothing is asked', async (_name, sign) => {
    const before = questions();
    expect(await statusTo(ABOUT_NOBODY, sign(ABOUT_NOBODY))).toBe(401);
    expect(questions()).toBe(before);
  });

  test('both secrets are good while one replaces the other', async () => {
    for (const secret of [STRIPE_SECRET, OLD])
      expect(await statusTo(ABOUT_NOBODY, signed(ABOUT_NOBODY, secret))).toBe(200);
  });

  test('notices about what this service did not make are accepted', async () => {
    const dispute = { object: 'dispute', payment_intent: 'pi_of_somebody_else' };
    const others = [noticeOf(dispute), noticeOf({ object: 'payout' })];
    for (const body of [noticeAbout('../../payments'), ...others])
      expect(await statusTo(body)).toBe(200);
  });

  test.each(['', 'not JSON', '[]', '{}', '{"data":{"object":"x"}}'])(
    'a signed body that is no event is 400: %p',
    async (body) => {
      const details = ['the body is not a Stripe event'];
      expectError(await over.deliver(body), 400, 'INVALID_REQUEST', details);
    },
  );
});

describe('a notice about a payment', () => {
  test('whose response was lost: Stripe is asked, not believed; again where it does not say', async () => {
    // Recovery asks once by itself: it hears nothing.
    double.plan('confirm', 'reset after acting');
    double.plan('read', '500 before acting');
    const paymentId = locatedId(await service.create());
    expect((await shown(paymentId)).status).toBe('PENDING');
    double.plan('read', '500 before acting');
    expect(await tell(JSON.parse(noticeAbout(paymentId)).data.object)).toEqual([503, 200]);
    expect((await shown(paymentId)).status).toBe('AUTHORIZED');
  });

  test('is to be delivered again where Stripe does not say what came later, or whose it is', async () => {
    const { paymentId, intent } = await authorized();
    for (const object of [
      { object: 'payment_intent', status: 'canceled', metadata: { paymentId } },
      { object: 'dispute', payment_intent: intent.id },
    ]) {
      double.plan('read', '500 before acting');
      expect(await tell(object)).toEqual([503, 200]);
    }
  });

  test('that comes twice, and after the fact, is asked about and changes nothing', async () => {
    const { paymentId } = await authorized();
    const { text } = await service.get(paymentId);
    const before = questions();
    const notice = { object: 'payment_intent', status: 'succeeded', metadata: { paymentId } };
    expect(await tell(notice)).toEqual([200, 200]);
    expect(double.received.slice(-2).map(({ step }) => step)).toEqual(['read', 'read']);
    expect(questions()).toBe(before + 2);
    expect((await service.get(paymentId)).text).toBe(text);
  });

  test('that comes out of order: the first one shows all, and the older ones change nothing', async () => {
    const { paymentId, intent } = await sold();
    await service.change('refund', paymentId, { refundAmount: 500 });
    double.books.dispute(intent.id, { status: 'won' });
    lastRefundIs({ status: 'failed' });
    // As Stripe would have sent them: made, failed, disputed, closed; here the last one is first.
    const ofIntent = { object: 'dispute', payment_intent: intent.id };
    const ofPayment = { object: 'refund', metadata: { paymentId } };
    expect(await tell({ ...ofIntent, status: 'won' })).toEqual([200, 200]);
    const { text, json } = await service.get(paymentId);
    const disputes = [{ status: 'WON' }];
    expect(json).toMatchObject({ status: 'CAPTURED', refundedAmount: 0, disputes });
    for (const older of [
      { ...ofIntent, status: 'needs_response' },
      { ...ofPayment, status: 'failed' },
      { ...ofPayment, status: 'succeeded' },
    ])
      expect(await tell(older)).toEqual([200, 200]);
    expect((await service.get(paymentId)).text).toBe(text);
  });

  test('that comes before the response of the call that caused it waits for that call', async () => {
    double.actsAfterMs(300);
    const response = service.create();
    await until('it is confirmed', async () => double.received.at(-1)?.step === 'confirm');
    const { paymentId = '' } = [...double.books.intents.values()].at(-1)?.metadata ?? {};
    const noticed = await statusTo(noticeAbout(paymentId));
    double.actsAfterMs(0);
    expect([noticed, (await response).json.status]).toEqual([200, 'AUTHORIZED']);
    const confirms = double.received.filter(({ step }) => step === 'confirm');
    expect(new Set(confirms.map(({ path }) => path)).size).toBe(confirms.length);
  });
});

describe('what came later, which Stripe is asked about by the PaymentIntent that a notice names', () => {
  // Who cancels in the Dashboard can choose `abandoned` as well.
  test.each(['automatic', 'expired', 'requested_by_customer', 'abandoned'])(
    'a cancel (%s), by Stripe or in the Dashboard, once',
    async (reason) => {
      const { paymentId, intent } = await authorized();
      dashboard.cancel(intent.id, reason);
      expect(await tell(intent)).toEqual([200, 200]);
      expect((await shown(paymentId)).status).toBe('VOIDED');
      expect(await differencesOf(paymentId)).toEqual([]);
    },
  );

  test('a refund made in the Dashboard, once, and what bounces of it', async () => {
    const { paymentId, intent } = await sold();
    dashboard.refund(intent.id, 500);
    const notice = { object: 'refund', payment_intent: intent.id, metadata: {} };
    expect(await tell(notice)).toEqual([200, 200]);
    expect(await shown(paymentId)).toMatchObject({ refundedAmount: 500, refundableAmount: 2000 });
    lastRefundIs({ status: 'failed' });
    expect(await tell(notice)).toEqual([200, 200]);
    expect(await shown(paymentId)).toMatchObject({ refundedAmount: 0, refundableAmount: 2500 });
  });

  test('a capture made in the Dashboard, once: what it took can be refunded', async () => {
    const { paymentId, intent } = await authorized();
    dashboard.capture(intent.id, 1000);
    expect(await tell(intent)).toEqual([200, 200]);
    const transactions = [{ type: 'AUTH' }, { type: 'CAPTURE', amount: 1000 }];
    const captured = { status: 'CAPTURED', capturedAmount: 1000, transactions };
    expect(await shown(paymentId)).toMatchObject(captured);
    expect((await service.change('refund', paymentId)).json.status).toBe('REFUNDED');
    expect(await differencesOf(paymentId)).toEqual([]);
  });

  test('a capture in the Dashboard without a notice is found by the capture that it rejects', async () => {
    const { paymentId, intent } = await authorized();
    dashboard.capture(intent.id, 1000);
    expect((await service.change('capture', paymentId)).status).toBe(422);
    await until('it is seen', async () => (await shown(paymentId)).status === 'CAPTURED');
    expect(await shown(paymentId)).toMatchObject({ capturedAmount: 1000 });
  });

  test('a dispute: no refund while it is open, a late notice of its beginning opens it no more', async () => {
    const { paymentId, intent } = await sold();
    const dispute = double.books.dispute(intent.id);
    const began = { ...dispute };
    expect(await tell(began)).toEqual([200, 200]);
    expect(await shown(paymentId)).toMatchObject({ disputes: [{ status: 'OPEN', amount: 2500 }] });
    const refund = await service.change('refund', paymentId);
    expectError(refund, 422, 'REFUND_NOT_ALLOWED', ['the payment is disputed']);
    dispute.status = 'won';
    for (const notice of [dispute, began]) expect(await tell(notice)).toEqual([200, 200]);
    expect(await shown(paymentId)).toMatchObject({ disputes: [{ status: 'WON' }] });
    expect((await service.change('refund', paymentId)).status).toBe(200);
  });

  test.each([
    ['m_connected', 'acct_1', STRIPE_SECRET, { account: 'acct_1' }],
    ['m_keyed', OWN_KEY, OWN_SECRET, {}],
  ] as const)('of %s, in its own account', async (merchantId, name, secret, origin) => {
    const books = double.openAccount(name, createBooks());
    const token = await signToken({ merchant_id: merchantId, sub: 'shop' });
    const { paymentId, intent } = await sold(true, token, books);
    books.dashboard.refund(intent.id, 500);
    const notice = { object: 'refund', payment_intent: intent.id };
    // The same notice, as if it came from the account of the installation.
    expect(await tell(notice)).toEqual([200, 200]);
    expect((await shown(paymentId, token)).refundedAmount).toBe(0);
    expect(await tell(notice, origin, secret)).toEqual([200, 200]);
    expect((await shown(paymentId, token)).refundedAmount).toBe(500);
  });
});

describe('what no notice told of', () => {
  const auditor = async () => ({
    token: await signToken({ merchant_id: '*', sub: 'auditor', scope: 'audit:read' }),
  });

  test('a capture, a cancel and a refund are recorded by the comparison, which then agrees', async () => {
    const [captured, canceled] = [await authorized(), await authorized()];
    const refunded = await sold();
    dashboard.capture(captured.intent.id, 1000);
    dashboard.cancel(canceled.intent.id);
    dashboard.refund(refunded.intent.id, 500);
    for (const { paymentId } of [captured, canceled, refunded])
      expect(await differencesOf(paymentId)).toEqual([]);
    expect(await shown(captured.paymentId)).toMatchObject({ capturedAmount: 1000 });
    expect(await shown(canceled.paymentId)).toMatchObject({ status: 'VOIDED' });
    expect(await shown(refunded.paymentId)).toMatchObject({ refundedAmount: 500 });
  });

  test('one payment alone does not agree; it is asked about and stays as it is', async () => {
    const { paymentId, intent } = await authorized();
    const path = `/audit/v1/payments/${paymentId}/reconcile`;
    const agrees = async () => {
      const { json } = await service.ask('GET', path, undefined, await auditor());
      return (json as unknown as { ok: boolean }).ok;
    };
    expect(await agrees()).toBe(true);
    dashboard.capture(intent.id, 1000);
    expect(await agrees()).toBe(false);
    expect((await shown(paymentId)).status).toBe('AUTHORIZED');
    await tell(intent);
    expect(await agrees()).toBe(true);
  });

  test('a dispute and its end are recorded; one that cannot be recorded is a difference', async () => {
    const { paymentId, intent } = await sold();
    const made = double.books.dispute(intent.id);
    const ends = async (status: string) => {
      Object.assign(made, { status });
      // The double shows the same books to each account that has none of its own.
      const found = (await differencesOf(paymentId)).map((one) => `${one.kind} ${one.operationId}`);
      const { disputes } = (await shown(paymentId)) as { disputes?: { status: string }[] };
      return [[...new Set(found)], disputes?.map((one) => one.status)];
    };
    expect(await ends('under_review')).toEqual([[], ['OPEN']]);
    expect(await ends('lost')).toEqual([[], ['LOST']]);
    expect(await ends('appeal_under_review')).toEqual([[], ['LOST']]);
    expect(await ends('won')).toEqual([[], ['WON']]);
    expect(await ends('lost')).toEqual([[`MISSING_IN_LOG ${made.id}`], ['WON']]);
    await ends('won');
  });

  test('where Stripe does not list disputes, nothing is said to agree', async () => {
    // PaymentIntents and refunds are listed first.
    for (const fault of ['another amount', 'another amount', '403'] as const)
      double.plan('list', fault);
    const asking = await auditor();
    const response = await service.ask('POST', '/audit/v1/reconcile', undefined, asking);
    expect(response.status).toBe(503);
  });
});
