/** The double is as little kind as Stripe: what a test over it would else not meet. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { Provider } from '../../../command-api/provider/port.ts';
import { getIntent, listIntents } from '../../../command-api/provider/stripe/requests.ts';
import { CardSecret } from '../../../shared/payment/card.ts';
import { STRIPE_API_VERSION_DEFAULT } from '../../../shared/runtime/settings/table.ts';
import { authorize, followUp } from '../../support/provider-operations.ts';
import { createBooks } from '../../support/stripe-double/books.ts';
import { type StripeDouble, stripeDouble } from '../../support/stripe-double/server.ts';
import { driverOver, TEST_ACCOUNT } from '../../support/stripe-fault-rounds.ts';
import { until } from '../../support/until.ts';

const keepIt = async (): Promise<void> => undefined;
let double: StripeDouble;
let provider: Provider;
beforeEach(async () => {
  double = await stripeDouble();
  provider = driverOver(double.url);
});
afterEach(async () => {
  await provider.close();
  await double.close();
});

const HEADERS = {
  authorization: `Bearer ${TEST_ACCOUNT.secretKey}`,
  'stripe-version': STRIPE_API_VERSION_DEFAULT,
};
const ask = (path: string, headers: Record<string, string> = HEADERS, form?: object) =>
  fetch(`${double.url}${path}`, {
    headers,
    ...(form && { method: 'POST', body: new URLSearchParams(Object.entries(form)) }),
  });
const authorizedWith = async (token: string, fields: object = {}) => {
  const card = new CardSecret({ token, holderName: 'Jane Doe' });
  const operation = { ...authorize(), card, ...fields };
  const outcome = await provider.execute(operation, keepIt);
  const reference = [...double.books.intents.values()].at(-1)?.id ?? '';
  return { operation, outcome, reference };
};

test.each([
  ['approved', 'pm_card_visa', 'APPROVED'],
  ['declined', 'pm_card_visa_chargeDeclined', 'DECLINED'],
])('M8: a token that was %s once pays no more', async (_name, card, first) => {
  for (const kind of ['pm', 'ctoken'] as const) {
    const token = double.books.makeToken(kind, card);
    expect((await authorizedWith(token)).outcome.outcome).toBe(first);
    expect((await authorizedWith(token)).outcome).toEqual({
      outcome: 'NOT_SENT',
      byProvider: true,
      reason: 'token_used',
    });
  }
});

test('M8: a token whose hold was released pays no more; a saved one pays again', async () => {
  const token = double.books.makeToken('pm', 'pm_card_visa');
  double.books.dashboard.cancel((await authorizedWith(token)).reference);
  expect((await authorizedWith(token)).outcome).toMatchObject({ reason: 'token_used' });
  const customer = 'cus_Saved';
  const saved = double.books.makeToken('pm', 'pm_card_visa', customer);
  for (let time = 0; time < 2; time += 1)
    expect((await authorizedWith(saved, { customer })).outcome.outcome).toBe('APPROVED');
});

test('M4: a search that is behind shows nothing new', async () => {
  const first = await authorizedWith('pm_card_visa');
  double.books.holdSearch();
  const second = await authorizedWith('pm_card_visa');
  const query = (id: string) => encodeURIComponent(`metadata['operationId']:'${id}'`);
  const hits = async ({ operation: { operationId } }: typeof first) => {
    const found = await ask(`/v1/payment_intents/search?query=${query(operationId)}`);
    return ((await found.json()) as { data: object[] }).data.length;
  };
  expect([await hits(first), await hits(second)]).toEqual([1, 0]);
});

test('M5: an object has its whole size, and its charge only where that is expanded', async () => {
  const { reference } = await authorizedWith('pm_card_visa');
  const { path, params } = getIntent(reference);
  const whole = await ask(`${path}?${new URLSearchParams(params)}`);
  expect((await whole.text()).length).toBeGreaterThan(4_500);
  const bare = (await (await ask(path)).json()) as { latest_charge: unknown };
  expect(bare.latest_charge).toBe(reference.replace('pi_', 'ch_'));
  const window = { from: 0, to: Math.floor(Date.now() / 1_000) + 60 };
  const listed = await ask(
    `/v1/payment_intents?${new URLSearchParams(listIntents(window)().params)}`,
  );
  expect(await listed.json()).toMatchObject({
    data: [{ id: reference, latest_charge: { status: 'succeeded' } }],
  });
});

test('a key of one account is free in another', async () => {
  const other = double.openAccount('acct_other', createBooks());
  const form = { amount: '2000', currency: 'usd' };
  const keyed = { ...HEADERS, 'idempotency-key': 'k' };
  const opened = async (headers: Record<string, string>) =>
    ((await (await ask('/v1/payment_intents', headers, form)).json()) as { id: string }).id;
  const own = await opened(keyed);
  expect(await opened(keyed)).toBe(own);
  const elsewhere = await opened({ ...keyed, 'stripe-account': 'acct_other' });
  expect([...other.intents.keys()]).toEqual([elsewhere]);
});

test('while one request changes a PaymentIntent another one is 429, and its outcome is unknown', async () => {
  const { operation, reference } = await authorizedWith('pm_card_visa');
  const change = (kind: 'CAPTURE' | 'VOID') =>
    provider.execute(followUp(kind, operation, { authorizationReference: reference }), keepIt);
  const act = double.hold();
  const first = change('CAPTURE');
  await until('the capture is at Stripe', () => double.received.at(-1)?.step === 'capture');
  expect(await change('CAPTURE')).toEqual({ outcome: 'UNKNOWN', reason: 'status' });
  act();
  expect((await first).outcome).toBe('APPROVED');
});

test('a request without a version, or of one with other objects, is rejected', async () => {
  for (const version of [undefined, '2024-06-20'])
    expect(
      (
        await ask('/v1/payment_intents', {
          authorization: HEADERS.authorization,
          ...(version && { 'stripe-version': version }),
        })
      ).status,
    ).toBe(400);
});
