/**
 * What only Stripe itself can show: each point of docs/providers/stripe.md that rests on its documentation
 * alone. Opt-in, with a test key, so no money moves; by tokens, one request after another.
 */
import { expect } from '@jest/globals';
import {
  cancelAsFence,
  followUpRequest,
  getIntent,
  listDisputes,
  listEnds,
  listIntents,
  listRefunds,
  makePaymentMethod,
  type StripeRequest,
  searchOurs,
  takeKey,
} from '../../providers/stripe/requests.ts';
import { CardSecret } from '../../shared/payment/card.ts';
import { APPROVED_CARD, authorize, CVV, followUp } from '../support/provider-operations.ts';
import { doubtful, type StripeItself, unused } from '../support/stripe-itself.ts';
import { until } from '../support/until.ts';

const RACES = 5;
const SOON_MS = 60_000;
const NEEDS_SHOPPER = 'pm_card_authenticationRequired';
const REJECTED_BY_KEY = [400, 'idempotency_error', undefined];
const WRONG_STATE = [400, 'invalid_request_error', 'payment_intent_unexpected_state'];

const aroundNow = () => {
  const now = Math.floor(Date.now() / 1_000);
  return { from: now - 300, to: now + 60 };
};
const post = (path: string, params: Record<string, string> = {}): StripeRequest => {
  return { method: 'POST', path, params };
};
const sent = async <T = { id: string }>({ send }: StripeItself, request: StripeRequest) => {
  const { status, body } = await send(request);
  expect(status).toBe(200);
  return body as T;
};
const rejected = async ({ send }: StripeItself, request: StripeRequest) => {
  const { status, body } = await send(request);
  const { error } = body as { error: { code?: string; type: string } };
  return [status, error.type, error.code];
};
type Listed = { id: string; created: number };
const listed = async (stripe: StripeItself, request: StripeRequest) =>
  (await sent<{ data: Listed[] }>(stripe, request)).data;
/** Until the list holds what names it. */
const untilListed = (stripe: StripeItself, request: () => StripeRequest, name: string) =>
  until(
    `${name} is listed`,
    async () => JSON.stringify(await listed(stripe, request())).includes(name),
    SOON_MS,
  );
const byToken = (token: string) => ({
  ...authorize(undefined, unused()),
  card: new CardSecret({ token, holderName: 'Jane Doe' }),
});

for (const kind of ['CAPTURE', 'VOID', 'REFUND'] as const)
  doubtful(
    `a key that an update has taken rejects the ${kind} that comes later, which is not carried out`,
    async (stripe) => {
      const begun = kind === 'REFUND' ? 'SALE' : 'AUTHORIZE';
      const { operation, reference } = await stripe.begun(begun);
      const late = followUp(kind, operation, unused());
      await sent(stripe, takeKey(late.operationId, reference));
      expect(await rejected(stripe, followUpRequest(late, reference))).toEqual(REJECTED_BY_KEY);
      const status = kind === 'REFUND' ? 'succeeded' : 'requires_capture';
      expect((await stripe.intent(reference)).status).toBe(status);
      expect(await listed(stripe, listRefunds({ reference })())).toEqual([]);
    },
  );

doubtful('a capture that was rejected is replayed with its 400', async ({ begun, send }) => {
  const { operation, reference } = await begun('AUTHORIZE');
  const tooMuch = followUp('CAPTURE', operation, { ...unused(), amount: operation.amount + 1 });
  const first = await send(followUpRequest(tooMuch, reference));
  const again = await send(followUpRequest(tooMuch, reference));
  expect([first.status, again.status]).toEqual([400, 400]);
  expect(again.headers).toMatchObject({ 'idempotent-replayed': 'true' });
});

doubtful('a call and its fence at once: what is fenced is not held', async (stripe) => {
  for (let round = 0; round < RACES; round += 1) {
    const operation = authorize(undefined, unused());
    const requestedAt = new Date().toISOString();
    let fence: Promise<unknown> = Promise.resolve();
    let reference = '';
    const ask = () => stripe.provider.fence({ ...operation, reference, requestedAt });
    await stripe.provider.execute(operation, async (opened) => {
      reference = opened;
      fence = ask();
    });
    await fence;
    const { outcome: known } = await ask();
    const held = (await stripe.intent(reference)).status === 'requires_capture';
    expect([known, held]).toEqual(held ? ['APPROVED', true] : ['FENCED', false]);
  }
});

doubtful('a card that needs the shopper is declined if there is none', async ({ provider }) => {
  const declined = { outcome: 'DECLINED', failureCode: 'AUTHENTICATION_REQUIRED' };
  expect(await provider.execute(byToken(NEEDS_SHOPPER))).toMatchObject(declined);
});

doubtful('a confirm by a ConfirmationToken gives an address for the shopper', async (stripe) => {
  const path = '/v1/test_helpers/confirmation_tokens';
  const { id } = await sent(stripe, post(path, { payment_method: NEEDS_SHOPPER }));
  const authentication = { returnUrl: 'https://shop.example/return' };
  // Its confirm says use_stripe_sdk=false.
  const outcome = await stripe.provider.execute({ ...byToken(id), authentication });
  const url = expect.stringMatching(/^https:/);
  expect(outcome).toMatchObject({ outcome: 'ACTION_REQUIRED', url });
});

doubtful('a confirm with a token that was used is a 400 without a code', async (stripe) => {
  // A PaymentMethod without a customer, as Stripe.js makes one.
  const params = { type: 'card', 'card[token]': 'tok_visa' };
  const { id } = await sent(stripe, post('/v1/payment_methods', params));
  expect((await stripe.provider.execute(byToken(id))).outcome).toBe('APPROVED');
  expect(await stripe.provider.execute(byToken(id))).toMatchObject({ reason: 'token_used' });
});

doubtful('a canceled hold still shows its charge as succeeded', async (stripe) => {
  const { operation, reference } = await stripe.begun('AUTHORIZE');
  await sent(stripe, followUpRequest(followUp('VOID', operation, unused()), reference));
  expect(await stripe.intent(reference)).toMatchObject({
    status: 'canceled',
    latest_charge: { status: 'succeeded' },
  });
});

doubtful('a capture of part makes no refund of the rest', async (stripe) => {
  const { operation, reference } = await stripe.begun('AUTHORIZE');
  const part = followUp('CAPTURE', operation, { ...unused(), amount: 500 });
  await sent(stripe, followUpRequest(part, reference));
  expect(await listed(stripe, listRefunds({ reference })())).toEqual([]);
  expect(await stripe.intent(reference)).toMatchObject({ amount_received: 500 });
});

doubtful('a second capture is a 400 with the code of the state', async (stripe) => {
  const { operation, reference } = await stripe.begun('SALE');
  const again = followUpRequest(followUp('CAPTURE', operation, unused()), reference);
  expect(await rejected(stripe, again)).toEqual(WRONG_STATE);
});

doubtful('a cancel as a fence can be repeated: it has no key to be replayed by', async (stripe) => {
  const { reference } = await stripe.begun('AUTHORIZE');
  await sent(stripe, cancelAsFence(reference));
  expect(await rejected(stripe, cancelAsFence(reference))).toEqual(WRONG_STATE);
});

doubtful('a canceled PaymentIntent keeps why its card was declined', async (stripe) => {
  const operation = authorize('4000000000000002', unused());
  let reference = '';
  const keep = async (opened: string) => {
    reference = opened;
  };
  expect((await stripe.provider.execute(operation, keep)).outcome).toBe('DECLINED');
  await stripe.send(cancelAsFence(reference));
  expect(await stripe.intent(reference)).toMatchObject({
    status: 'canceled',
    last_payment_error: { code: 'card_declined' },
  });
});

doubtful('a list shows what was opened a moment before', async (stripe) => {
  const { reference } = await stripe.begun('AUTHORIZE');
  const ids = (await listed(stripe, listIntents(aroundNow())())).map(({ id }) => id);
  expect(ids).toContain(reference);
});

doubtful('search takes the query for all of ours, and lists the newest first', async (stripe) => {
  const { reference } = await stripe.begun('AUTHORIZE');
  await untilListed(stripe, searchOurs, reference);
  const times = (await listed(stripe, searchOurs())).map(({ created }) => created);
  expect(times).toEqual(times.toSorted((a, b) => b - a));
});

doubtful('a capture and a cancel are listed as events, with their metadata', async (stripe) => {
  for (const verb of ['capture', 'cancel']) {
    const { operation, reference } = await stripe.begun('AUTHORIZE');
    await sent(stripe, post(`/v1/payment_intents/${reference}/${verb}`));
    await untilListed(stripe, listEnds(aroundNow().from), operation.operationId);
  }
});

doubtful('disputes are listed by time, with their PaymentIntent', async (stripe) => {
  const operation = { ...byToken('pm_card_createDispute'), kind: 'SALE' as const };
  expect((await stripe.provider.execute(operation)).outcome).toBe('APPROVED');
  await untilListed(stripe, () => listDisputes(aroundNow())(), operation.operationId);
});

doubtful('raw card numbers are taken, or a 400 or 402 that is no decline', async (stripe) => {
  const card = { number: APPROVED_CARD, holderName: 'Jane Doe', expiryMonth: '12' };
  const request = makePaymentMethod({ ...card, expiryYear: '2034', cvv: CVV });
  if ((await stripe.send(request)).status === 200) return;
  const [status, type] = await rejected(stripe, request);
  expect([400, 402]).toContain(status);
  expect(type).toBe('invalid_request_error');
});

doubtful('what is none of the account is a 404 resource_missing', async (stripe) => {
  const missing = await rejected(stripe, getIntent('pi_3NoSuchPaymentIntent0'));
  expect(missing).toEqual([404, 'invalid_request_error', 'resource_missing']);
});

const RESTRICTED = 'STRIPE_RESTRICTED_TEST_KEY';

doubtful(
  'a restricted key as on the page may do all that a payment needs, and expand latest_charge',
  async (stripe) => {
    const { operation, reference } = await stripe.begun('AUTHORIZE');
    const { latest_charge } = await stripe.intent(reference);
    expect(latest_charge).toMatchObject({ status: 'succeeded' });
    const capture = followUp('CAPTURE', operation, unused());
    const refund = followUp('REFUND', operation, { ...unused(), amount: 100 });
    for (const request of [
      followUpRequest(capture, reference),
      followUpRequest(refund, reference),
      listDisputes(aroundNow())(),
      listRefunds(aroundNow())(),
      listEnds(aroundNow().from)(),
      searchOurs(),
    ])
      await sent(stripe, request);
    const described = { outcome: 'DESCRIBED', brand: 'VISA' };
    expect(await stripe.provider.describeToken('pm_card_visa', 'm_1')).toMatchObject(described);
  },
  RESTRICTED,
);

doubtful(
  'what a restricted key may not do is a 403 without a code',
  async (stripe) => {
    const denied = await rejected(stripe, { method: 'GET', path: '/v1/balance', params: {} });
    expect(denied).toEqual([403, 'invalid_request_error', undefined]);
  },
  RESTRICTED,
);
