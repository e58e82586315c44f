/** `POST /webhooks/stripe`: only what Stripe signed is heard, and all it does is to make us ask now. */
import { mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { expectError, idOf, locatedId, signToken } from '../support/service-in-process.ts';
import { type Books, createBooks, type Intent } from '../support/stripe-double/books.ts';
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
const { double, service, deliver, intentOf } = over;
afterAll(async () => {
  await over[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

/** How many requests about a payment Stripe has received; the ledger is read beside them. */
const questions = (): number => double.received.filter(({ step }) => step !== 'list').length;

const noticeOf = (object: object, account?: string): string =>
  JSON.stringify({
    id: 'evt_1',
    type: typeOf(object),
    ...(account && { account }),
    data: { object },
  });
const typeOf = (object: { object?: string; status?: string }): string =>
  object.object === 'payment_intent' ? `payment_intent.${object.status}` : 'any';
const noticeAbout = (paymentId: string, type = 'payment_intent.payment_failed'): string =>
  JSON.stringify({
    id: 'evt_1',
    type,
    data: { object: { object: 'payment_intent', metadata: { paymentId } } },
  });

const signed = (body: string, secret = STRIPE_SECRET, atMs = Date.now()): string =>
  stripeSignature(body, secret, atMs);

/** A create whose response was lost: unresolved, and not asked about again by itself. */
const lostCreate = async (): Promise<string> => {
  // Recovery asks once by itself: it hears nothing.
  double.plan('confirm', 'reset after acting');
  double.plan('read', '500 before acting');
  const response = await service.create();
  const paymentId = locatedId(response);
  expect((await service.get(paymentId)).json.status).toBe('PENDING');
  return paymentId;
};
const statusOf = async (paymentId: string) => (await service.get(paymentId)).json.status;

describe('what is heard', () => {
  test.each([
    ['no signature', () => null],
    ['a signature by another secret', (body: string) => signed(body, 'whsec_of_a_forger')],
    ['a signature of another body', () => signed('{}')],
    ['one of six minutes ago', (body: string) => signed(body, STRIPE_SECRET, Date.now() - 360_000)],
    [
      'one of six minutes ahead',
      (body: string) => signed(body, STRIPE_SECRET, Date.now() + 360_000),
    ],
    ['another scheme', (body: string) => signed(body).replace('v1=', 'v0=')],
    ['two times', (body: string) => `t=1,${signed(body)}`],
    ['a cut one', (body: string) => signed(body).slice(0, -1)],
  ])('%s is 401, and nothing is asked', async (_name, sign) => {
    const body = noticeAbout('pay_01ARZ3NDEKTSV4RRFFQ69G5FAV');
    const before = questions();
    expect((await deliver(body, sign(body))).status).toBe(401);
    expect(questions()).toBe(before);
  });

  test.each([STRIPE_SECRET, OLD])(
    'both secrets are good while one replaces the other',
    async (secret) => {
      const body = noticeAbout('pay_01ARZ3NDEKTSV4RRFFQ69G5FAV');
      expect((await deliver(body, signed(body, secret))).status).toBe(200);
    },
  );

  test('notices about what this service did not make are accepted', async () => {
    for (const body of [
      noticeAbout('pay_01ARZ3NDEKTSV4RRFFQ69G5FAV'),
      noticeAbout('../../payments'),
      noticeOf({ object: 'dispute', payment_intent: 'pi_of_somebody_else' }),
      noticeOf({ object: 'payout' }),
    ]) {
      expect((await deliver(body)).status).toBe(200);
    }
  });

  test.each(['', 'not JSON', '[]', '{}', '{"data":{"object":"x"}}'])(
    'a signed body that is no event is 400: %p',
    async (body) => {
      expectError(await deliver(body), 400, 'INVALID_REQUEST', ['the body is not a Stripe event']);
    },
  );
});

describe('a notice about a payment', () => {
  test('whose response was lost: Stripe is asked, not believed, and the outcome is recorded', async () => {
    const paymentId = await lostCreate();
    const body = noticeAbout(paymentId);
    expect((await deliver(body)).status).toBe(200);
    // The notice says that it failed; Stripe itself says that it did not.
    expect(await statusOf(paymentId)).toBe('AUTHORIZED');
  });

  test('is to be delivered again where the outcome is not known yet', async () => {
    const paymentId = await lostCreate();
    const body = noticeAbout(paymentId);
    double.plan('read', '500 before acting');
    expect((await deliver(body)).status).toBe(503);
    expect((await deliver(body)).status).toBe(200);
    expect(await statusOf(paymentId)).toBe('AUTHORIZED');
  });

  test('that comes twice, and after the fact, is asked about and changes nothing', async () => {
    const { paymentId } = (await service.create()).json;
    const { text } = await service.get(paymentId);
    const before = questions();
    const body = noticeAbout(paymentId, 'payment_intent.succeeded');
    for (let time = 0; time < 2; time += 1) {
      expect((await deliver(body)).status).toBe(200);
    }
    expect(double.received.slice(-2).map(({ step }) => step)).toEqual(['read', 'read']);
    expect(questions()).toBe(before + 2);
    expect((await service.get(paymentId)).text).toBe(text);
  });

  test('that comes out of order: the first one shows all, and the older ones change nothing', async () => {
    const { paymentId } = (await service.create({ captureNow: true })).json;
    await service.change('refund', paymentId, { refundAmount: 500 });
    const { id } = intentOf(paymentId);
    double.books.dispute(id, { status: 'won' });
    Object.assign(double.books.refunds.at(-1) ?? {}, { status: 'failed' });
    // As Stripe would have sent them: made, failed, disputed, closed; here the last one is first.
    const [closed, ...older] = [
      { object: 'dispute', payment_intent: id, status: 'won' },
      { object: 'dispute', payment_intent: id, status: 'needs_response' },
      { object: 'refund', metadata: { paymentId }, status: 'failed' },
      { object: 'refund', metadata: { paymentId }, status: 'succeeded' },
    ].map((object) => noticeOf(object));
    expect((await deliver(closed ?? '')).status).toBe(200);
    const { text, json } = await service.get(paymentId);
    expect(json).toMatchObject({
      status: 'CAPTURED',
      refundedAmount: 0,
      disputes: [{ status: 'WON' }],
    });
    for (const body of older) expect((await deliver(body)).status).toBe(200);
    expect((await service.get(paymentId)).text).toBe(text);
  });

  test.each([
    ['automatic', 'VOIDED'],
    ['expired', 'VOIDED'],
    // In the Dashboard, where `abandoned` can be chosen as well.
    ['requested_by_customer', 'VOIDED'],
    ['abandoned', 'VOIDED'],
  ])('of a hold that Stripe shows as canceled (%s) leaves it %s', async (reason, status) => {
    const { paymentId } = (await service.create()).json;
    Object.assign(intentOf(paymentId), { status: 'canceled', cancellation_reason: reason });
    const body = noticeAbout(paymentId, 'payment_intent.canceled');
    for (let time = 0; time < 2; time += 1) {
      expect((await deliver(body)).status).toBe(200);
    }
    expect(await statusOf(paymentId)).toBe(status);
    const { differences } = await reconcile(service, '?all=true');
    expect(differences.filter((one) => one.paymentId === paymentId)).toEqual([]);
  });

  test('is to be delivered again where Stripe does not say what came later', async () => {
    const { paymentId } = (await service.create()).json;
    const body = noticeAbout(paymentId, 'payment_intent.canceled');
    double.plan('read', '500 before acting');
    expect((await deliver(body)).status).toBe(503);
    expect((await deliver(body)).status).toBe(200);
  });

  test('that comes before the response of the call that caused it waits for that call', async () => {
    double.actsAfterMs(300);
    const response = service.create();
    await until(
      'the PaymentIntent is confirmed',
      async () => double.received.at(-1)?.step === 'confirm',
    );
    const paymentId = [...double.books.intents.values()].at(-1)?.metadata.paymentId ?? '';
    const body = noticeAbout(paymentId);
    const [noticed, created] = await Promise.all([deliver(body), response]);
    double.actsAfterMs(0);
    expect([noticed.status, created.json.status]).toEqual([200, 'AUTHORIZED']);
    const confirms = double.received.filter(({ step, params }) =>
      step === 'confirm' ? params.has('payment_method') : false,
    );
    expect(new Set(confirms.map(({ path }) => path)).size).toBe(confirms.length);
  });
});

describe('what came later, which Stripe is asked about by the PaymentIntent that a notice names', () => {
  const sold = async (token?: string, books: Books = double.books, captureNow = true) => {
    const options = token === undefined ? {} : { token };
    const paymentId = idOf(await service.create({ captureNow }, options));
    return { paymentId, intent: intentOf(paymentId, books) };
  };
  const authorized = () => sold(undefined, double.books, false);
  const captureInDashboard = (intent: Intent, amount: number) =>
    double.books.dashboard.capture(intent.id, amount);
  const differencesOf = async (id: string) =>
    (await reconcile(service)).differences.filter(({ paymentId }) => paymentId === id);
  const refundedInDashboard = (intent: Intent, amount: number, books: Books = double.books) =>
    books.dashboard.refund(intent.id, amount);
  const tell = async (object: object, secret = STRIPE_SECRET, account?: string) => {
    const body = noticeOf(object, account);
    const responses = [];
    for (let time = 0; time < 2; time += 1)
      responses.push((await deliver(body, signed(body, secret))).status);
    return responses;
  };
  const shown = async (paymentId: string, token?: string) =>
    (await service.get(paymentId, token === undefined ? {} : { token })).json;

  test('a refund made in the Dashboard, once, and what bounces of it', async () => {
    const { paymentId, intent } = await sold();
    refundedInDashboard(intent, 500);
    const notice = { object: 'refund', payment_intent: intent.id, metadata: {} };
    expect(await tell(notice)).toEqual([200, 200]);
    expect(await shown(paymentId)).toMatchObject({ refundedAmount: 500, refundableAmount: 2000 });
    Object.assign(double.books.refunds.at(-1) ?? {}, { status: 'failed' });
    expect(await tell(notice)).toEqual([200, 200]);
    expect(await shown(paymentId)).toMatchObject({ refundedAmount: 0, refundableAmount: 2500 });
  });

  test('a capture made in the Dashboard, once: what it took can be refunded', async () => {
    const { paymentId, intent } = await authorized();
    captureInDashboard(intent, 1000);
    expect(await tell(intent)).toEqual([200, 200]);
    expect(await shown(paymentId)).toMatchObject({
      status: 'CAPTURED',
      capturedAmount: 1000,
      transactions: [{ type: 'AUTH' }, { type: 'CAPTURE', amount: 1000 }],
    });
    expect((await service.change('refund', paymentId)).json.status).toBe('REFUNDED');
    expect(await differencesOf(paymentId)).toEqual([]);
  });

  test('a cancel made in the Dashboard, once', async () => {
    const { paymentId, intent } = await authorized();
    double.books.dashboard.cancel(intent.id);
    expect(await tell(intent)).toEqual([200, 200]);
    expect(await shown(paymentId)).toMatchObject({ status: 'VOIDED' });
    expect(await differencesOf(paymentId)).toEqual([]);
  });

  test('a capture in the Dashboard without a notice is found by the capture that it rejects', async () => {
    const { paymentId, intent } = await authorized();
    captureInDashboard(intent, 1000);
    expect((await service.change('capture', paymentId)).status).toBe(422);
    await until('it is seen', async () => (await shown(paymentId)).status === 'CAPTURED');
    expect(await shown(paymentId)).toMatchObject({ capturedAmount: 1000 });
  });

  test('a refund of ours that bounced: REFUNDED goes back to CAPTURED', async () => {
    const { paymentId, intent } = await sold();
    expect((await service.change('refund', paymentId)).json.status).toBe('REFUNDED');
    const made = double.books.refunds.at(-1);
    Object.assign(made ?? {}, { status: 'failed', failure_reason: 'insufficient_funds' });
    expect(await tell({ ...made, payment_intent: intent.id })).toEqual([200, 200]);
    expect(await shown(paymentId)).toMatchObject({ status: 'CAPTURED', refundedAmount: 0 });
  });

  test('a dispute: no refund while it is open, a late notice of its beginning opens it no more', async () => {
    const { paymentId, intent } = await sold();
    const dispute = double.books.dispute(intent.id);
    const began = { ...dispute };
    expect(await tell(began)).toEqual([200, 200]);
    expect(await shown(paymentId)).toMatchObject({ disputes: [{ status: 'OPEN', amount: 2500 }] });
    expectError(await service.change('refund', paymentId), 422, 'REFUND_NOT_ALLOWED', [
      'the payment is disputed',
    ]);
    dispute.status = 'won';
    expect(await tell({ ...dispute })).toEqual([200, 200]);
    expect(await tell(began)).toEqual([200, 200]);
    const { disputes } = await shown(paymentId);
    expect(disputes).toMatchObject([{ status: 'WON' }]);
    expect((await service.change('refund', paymentId)).status).toBe(200);
  });

  test('log and Stripe agree on the refunds; one that no notice told of is recorded by the comparison', async () => {
    const ofRefunds = async () =>
      (await reconcile(service)).differences.filter(({ log, provider }) =>
        [log, provider].some((side) => (side as { kind?: string } | undefined)?.kind === 'REFUND'),
      );
    expect(double.books.refunds.map(({ status }) => status)).toEqual(
      expect.arrayContaining(['failed', 'succeeded']),
    );
    expect(await ofRefunds()).toEqual([]);
    const { paymentId, intent } = await sold();
    refundedInDashboard(intent, 500);
    expect(await ofRefunds()).toEqual([]);
    expect(await shown(paymentId)).toMatchObject({ refundedAmount: 500 });
  });

  test('a capture and a cancel that no notice told of are recorded by the comparison', async () => {
    const [captured, canceled] = [await authorized(), await authorized()];
    captureInDashboard(captured.intent, 1000);
    double.books.dashboard.cancel(canceled.intent.id);
    expect(await differencesOf(captured.paymentId)).toEqual([]);
    expect(await shown(captured.paymentId)).toMatchObject({ capturedAmount: 1000 });
    expect(await shown(canceled.paymentId)).toMatchObject({ status: 'VOIDED' });
  });

  test('one payment alone does not agree either; it is asked about and stays as it is', async () => {
    const token = await signToken({ merchant_id: '*', sub: 'auditor', scope: 'audit:read' });
    const { paymentId, intent } = await authorized();
    const agrees = async () => {
      const path = `/audit/v1/payments/${paymentId}/reconcile`;
      const { json } = await service.ask('GET', path, undefined, { token });
      return (json as unknown as { ok: boolean }).ok;
    };
    expect(await agrees()).toBe(true);
    captureInDashboard(intent, 1000);
    expect(await agrees()).toBe(false);
    expect((await shown(paymentId)).status).toBe('AUTHORIZED');
    await tell(intent);
    expect(await agrees()).toBe(true);
  });

  test('so are a dispute and its end; one that cannot be recorded is a difference', async () => {
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
    const token = await signToken({ merchant_id: '*', sub: 'auditor', scope: 'audit:read' });
    // PaymentIntents and refunds are listed first.
    for (const fault of ['another amount', 'another amount', '403'] as const)
      double.plan('list', fault);
    const response = await service.ask('POST', '/audit/v1/reconcile', undefined, { token });
    expect(response.status).toBe(503);
  });

  test('a PaymentIntent that cannot be read is a reason to deliver again', async () => {
    const { intent } = await sold();
    double.plan('read', '500 before acting');
    expect(await tell({ object: 'dispute', payment_intent: intent.id })).toEqual([503, 200]);
  });

  test.each([
    ['m_connected', 'acct_1', STRIPE_SECRET, 'acct_1'],
    ['m_keyed', OWN_KEY, OWN_SECRET, undefined],
  ] as const)('of %s, in its own account', async (merchantId, name, secret, account) => {
    const books = double.openAccount(name, createBooks());
    const token = await signToken({ merchant_id: merchantId, sub: 'shop' });
    const { paymentId, intent } = await sold(token, books);
    refundedInDashboard(intent, 500, books);
    const notice = { object: 'refund', payment_intent: intent.id };
    // The same notice, as if it came from the account of the installation.
    expect(await tell(notice)).toEqual([200, 200]);
    expect((await shown(paymentId, token)).refundedAmount).toBe(0);
    expect(await tell(notice, secret, account)).toEqual([200, 200]);
    expect((await shown(paymentId, token)).refundedAmount).toBe(500);
  });
});
