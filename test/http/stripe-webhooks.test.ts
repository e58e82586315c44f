/** `POST /webhooks/stripe`: only what Stripe signed is heard, and all it does is to make us ask now. */
import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type InProcess, NO_RETRIES, openInProcess } from '../support/in-process.ts';
import { type StripeDouble, stripeDouble } from '../support/stripe-double/server.ts';
import { until } from '../support/until.ts';

const [OLD, NEW] = ['whsec_the_old_secret', 'whsec_the_new_secret'];
const PATH = '/webhooks/stripe';
let double: StripeDouble;
let service: InProcess;

beforeAll(async () => {
  double = await stripeDouble();
  service = await openInProcess({
    ...NO_RETRIES,
    PROVIDER: 'stripe',
    STRIPE_SECRET_KEY: 'sk_test_of_the_service',
    STRIPE_API_URL: double.url,
    STRIPE_WEBHOOK_SECRET: `${NEW}, ${OLD}`,
    STRIPE_CREATES_PER_SECOND: '0',
  });
});
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  await double.close();
});

/** How many requests about a payment Stripe has received; the ledger is read beside them. */
const questions = (): number => double.received.filter(({ step }) => step !== 'list').length;

const noticeAbout = (paymentId: string): string =>
  JSON.stringify({
    id: 'evt_1',
    type: 'payment_intent.payment_failed',
    data: { object: { object: 'payment_intent', metadata: { paymentId } } },
  });

const signed = (body: string, secret = NEW, atMs = Date.now()): string => {
  const time = Math.floor(atMs / 1_000);
  return `t=${time},v1=${createHmac('sha256', secret).update(`${time}.${body}`).digest('hex')}`;
};

const deliver = (body: string, signature?: string) =>
  service.ask('POST', PATH, body, {
    token: null,
    headers: signature === undefined ? {} : { 'stripe-signature': signature },
  });

/** A create whose response was lost: unresolved, and not asked about again by itself. */
const lostCreate = async (): Promise<string> => {
  // Recovery asks once by itself: it hears nothing.
  double.plan('confirm', 'reset after acting');
  double.plan('read', '500 before acting');
  const response = await service.create();
  const paymentId = String(response.headers.location).split('/').at(-1) ?? '';
  expect((await service.get(paymentId)).json.status).toBe('PENDING');
  return paymentId;
};
const statusOf = async (paymentId: string) => (await service.get(paymentId)).json.status;

describe('what is heard', () => {
  test.each([
    ['no signature', () => undefined],
    ['a signature of somebody else', (body: string) => signed(body, 'whsec_of_a_forger')],
    ['a signature of another body', () => signed('{}')],
    ['one of six minutes ago', (body: string) => signed(body, NEW, Date.now() - 360_000)],
    ['one of six minutes ahead', (body: string) => signed(body, NEW, Date.now() + 360_000)],
    ['another scheme', (body: string) => signed(body).replace('v1=', 'v0=')],
    ['two times', (body: string) => `t=1,${signed(body)}`],
    ['a cut one', (body: string) => signed(body).slice(0, -1)],
  ])('%s is 401, and nothing is asked', async (_name, sign) => {
    const body = noticeAbout('pay_01ARZ3NDEKTSV4RRFFQ69G5FAV');
    const before = questions();
    expect((await deliver(body, sign(body))).status).toBe(401);
    expect(questions()).toBe(before);
  });

  test.each([NEW, OLD])('both secrets are good while one replaces the other', async (secret) => {
    expect((await deliver('{}', signed('{}', secret))).status).toBe(200);
  });

  test('notices about what this service did not make are accepted', async () => {
    for (const body of [
      noticeAbout('pay_01ARZ3NDEKTSV4RRFFQ69G5FAV'),
      noticeAbout('../../payments'),
      'not JSON',
    ]) {
      expect((await deliver(body, signed(body))).status).toBe(200);
    }
  });
});

describe('a notice about a payment', () => {
  test('whose response was lost: Stripe is asked, not believed, and the outcome is recorded', async () => {
    const paymentId = await lostCreate();
    const body = noticeAbout(paymentId);
    expect((await deliver(body, signed(body))).status).toBe(200);
    // The notice says that it failed; Stripe itself says that it did not.
    expect(await statusOf(paymentId)).toBe('AUTHORIZED');
  });

  test('is to be delivered again where the outcome is not known yet', async () => {
    const paymentId = await lostCreate();
    const body = noticeAbout(paymentId);
    double.plan('read', '500 before acting');
    expect((await deliver(body, signed(body))).status).toBe(503);
    expect((await deliver(body, signed(body))).status).toBe(200);
    expect(await statusOf(paymentId)).toBe('AUTHORIZED');
  });

  test('that comes twice, and after the fact, is asked about and changes nothing', async () => {
    const { paymentId } = (await service.create()).json;
    const { text } = await service.get(paymentId);
    const before = questions();
    const body = noticeAbout(paymentId);
    for (let time = 0; time < 2; time += 1) {
      expect((await deliver(body, signed(body))).status).toBe(200);
    }
    expect(double.received.slice(-2).map(({ step }) => step)).toEqual(['read', 'read']);
    expect(questions()).toBe(before + 2);
    expect((await service.get(paymentId)).text).toBe(text);
  });

  test.each([
    ['automatic', 'VOIDED'],
    ['expired', 'VOIDED'],
    // By somebody in the Dashboard, and by a fence of this service: neither ran out by itself.
    ['requested_by_customer', 'AUTHORIZED'],
    ['abandoned', 'AUTHORIZED'],
  ])('of a hold that Stripe shows as canceled (%s) leaves it %s', async (reason, status) => {
    const { paymentId } = (await service.create()).json;
    const intent = [...double.books.intents.values()].find(
      ({ metadata }) => metadata.paymentId === paymentId,
    );
    Object.assign(intent ?? {}, { status: 'canceled', cancellation_reason: reason });
    const body = noticeAbout(paymentId);
    for (let time = 0; time < 2; time += 1) {
      expect((await deliver(body, signed(body))).status).toBe(200);
    }
    expect(await statusOf(paymentId)).toBe(status);
  });

  test('is to be delivered again where Stripe does not say what came later', async () => {
    const { paymentId } = (await service.create()).json;
    const body = noticeAbout(paymentId);
    double.plan('read', '500 before acting');
    expect((await deliver(body, signed(body))).status).toBe(503);
    expect((await deliver(body, signed(body))).status).toBe(200);
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
    const [noticed, created] = await Promise.all([deliver(body, signed(body)), response]);
    double.actsAfterMs(0);
    expect([noticed.status, created.json.status]).toEqual([200, 'AUTHORIZED']);
    const confirms = double.received.filter(({ step, params }) =>
      step === 'confirm' ? params.has('payment_method') : false,
    );
    expect(new Set(confirms.map(({ path }) => path)).size).toBe(confirms.length);
  });
});
