/** Each point of docs/providers/stripe.md that rests on Stripe's documentation alone, by a test key. */
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
} from '../../providers/stripe/requests.ts';
import { CardSecret } from '../../shared/payment/card.ts';
import { APPROVED_CARD, authorize, CVV, followUp } from '../support/provider-operations.ts';
import { doubtful, type StripeItself, unused } from '../support/stripe-itself.ts';
import { until } from '../support/until.ts';

const SOON_MS = 60_000;
const aroundNow = () => {
  const now = Math.floor(Date.now() / 1_000);
  return { from: now - 300, to: now + 60 };
};
const listed = async ({ send }: StripeItself, request: StripeRequest) => {
  const { status, body } = await send(request);
  expect(status).toBe(200);
  return (body as { data: { id: string; created: number }[] }).data;
};
/** A PaymentMethod without a customer, as Stripe.js makes one. */
const newToken = async ({ send }: StripeItself): Promise<string> => {
  const { status, body } = await send({
    method: 'POST',
    path: '/v1/payment_methods',
    params: { type: 'card', 'card[token]': 'tok_visa' },
  });
  expect(status).toBe(200);
  return (body as { id: string }).id;
};
const byToken = (token: string) => ({
  ...authorize(undefined, unused()),
  card: new CardSecret({ token, holderName: 'Jane Doe' }),
});
const errorOf = ({ body }: { body: unknown }) =>
  (body as { error: { code?: string; type: string } }).error;

doubtful('a confirm with a token that was used is a 400 without a code', async (stripe) => {
  const { provider } = stripe;
  const token = await newToken(stripe);
  expect((await provider.execute(byToken(token))).outcome).toBe('APPROVED');
  expect(await provider.execute(byToken(token))).toMatchObject({ reason: 'token_used' });
});

doubtful('a canceled hold still shows its charge as succeeded', async ({ begun, send, intent }) => {
  const { operation, reference } = await begun('AUTHORIZE');
  const voided = followUp('VOID', operation, unused());
  expect((await send(followUpRequest(voided, reference))).status).toBe(200);
  expect(await intent(reference)).toMatchObject({
    status: 'canceled',
    latest_charge: { status: 'succeeded' },
  });
});

doubtful('a capture of part makes no refund of the rest', async ({ begun, send, intent }) => {
  const { operation, reference } = await begun('AUTHORIZE');
  const part = followUp('CAPTURE', operation, { ...unused(), amount: 500 });
  expect((await send(followUpRequest(part, reference))).status).toBe(200);
  expect((await send(listRefunds({ reference })())).body).toMatchObject({ data: [] });
  expect(await intent(reference)).toMatchObject({ amount_received: 500 });
});

doubtful('a second capture is a 400 with the code of the state', async ({ begun, send }) => {
  const { operation, reference } = await begun('SALE');
  const again = await send(followUpRequest(followUp('CAPTURE', operation, unused()), reference));
  expect([again.status, errorOf(again).code]).toEqual([400, 'payment_intent_unexpected_state']);
});

doubtful(
  'a cancel as a fence can be repeated, and has no key to be replayed by',
  async (stripe) => {
    const { reference } = await stripe.begun('AUTHORIZE');
    expect((await stripe.send(cancelAsFence(reference))).status).toBe(200);
    const again = await stripe.send(cancelAsFence(reference));
    expect([again.status, errorOf(again).code]).toEqual([400, 'payment_intent_unexpected_state']);
  },
);

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
  let found: { id: string; created: number }[] = [];
  const isFound = async () => {
    found = await listed(stripe, searchOurs());
    return found.some(({ id }) => id === reference);
  };
  await until('search has caught up', isFound, SOON_MS);
  const times = found.map(({ created }) => created);
  expect(times).toEqual(times.toSorted((a, b) => b - a));
});

doubtful(
  'a capture and a cancel are listed as events, with the metadata of their PaymentIntent',
  async (stripe) => {
    for (const verb of ['capture', 'cancel']) {
      const { operation, reference } = await stripe.begun('AUTHORIZE');
      const path = `/v1/payment_intents/${reference}/${verb}`;
      expect((await stripe.send({ method: 'POST', path, params: {} })).status).toBe(200);
      const isListed = async () =>
        JSON.stringify(await listed(stripe, listEnds(aroundNow().from)())).includes(
          operation.operationId,
        );
      await until(`the ${verb} is listed`, isListed, SOON_MS);
    }
  },
);

doubtful('disputes are listed by time, with their PaymentIntent', async (stripe) => {
  const operation = { ...byToken('pm_card_createDispute'), kind: 'SALE' as const };
  expect((await stripe.provider.execute(operation)).outcome).toBe('APPROVED');
  const isListed = async () =>
    JSON.stringify(await listed(stripe, listDisputes(aroundNow())())).includes(
      operation.operationId,
    );
  await until('the dispute is there', isListed, SOON_MS);
});

doubtful('raw card numbers are taken, or a 400 or 402 that is no decline', async ({ send }) => {
  const card = { number: APPROVED_CARD, holderName: 'Jane Doe', expiryMonth: '12' };
  const made = await send(makePaymentMethod({ ...card, expiryYear: '2034', cvv: CVV }));
  expect([200, 400, 402]).toContain(made.status);
  if (made.status !== 200) expect(errorOf(made).type).toBe('invalid_request_error');
});

doubtful(
  'a restricted key as on the page may do all that a payment needs, and expand latest_charge',
  async ({ begun, send, intent, provider }) => {
    const { operation, reference } = await begun('AUTHORIZE');
    expect(await intent(reference)).toMatchObject({ latest_charge: { status: 'succeeded' } });
    const capture = followUp('CAPTURE', operation, unused());
    expect((await send(followUpRequest(capture, reference))).status).toBe(200);
    const refund = followUp('REFUND', operation, { ...unused(), amount: 100 });
    expect((await send(followUpRequest(refund, reference))).status).toBe(200);
    expect((await provider.describeToken('pm_card_visa', 'm_1')).outcome).toBe('DESCRIBED');
    for (const request of [
      listDisputes(aroundNow())(),
      listRefunds(aroundNow())(),
      listEnds(aroundNow().from)(),
      searchOurs(),
    ])
      expect((await send(request)).status).toBe(200);
  },
  'STRIPE_RESTRICTED_TEST_KEY',
);

doubtful(
  'what a restricted key may not do is a 403 without a code',
  async ({ send }) => {
    const denied = await send({ method: 'GET', path: '/v1/balance', params: {} });
    const { type, code } = errorOf(denied);
    expect([denied.status, type, code]).toEqual([403, 'invalid_request_error', undefined]);
  },
  'STRIPE_RESTRICTED_TEST_KEY',
);

doubtful(
  'a confirm by a ConfirmationToken gives an address to send the shopper to',
  async (stripe) => {
    const made = await stripe.send({
      method: 'POST',
      path: '/v1/test_helpers/confirmation_tokens',
      params: { payment_method: 'pm_card_authenticationRequired' },
    });
    expect(made.status).toBe(200);
    const authentication = { returnUrl: 'https://shop.example/return' };
    const operation = { ...byToken((made.body as { id: string }).id), authentication };
    // Its confirm says use_stripe_sdk=false.
    expect(await stripe.provider.execute(operation)).toMatchObject({
      outcome: 'ACTION_REQUIRED',
      url: expect.stringMatching(/^https:/),
    });
  },
);

doubtful('what is none of the account is a 404 resource_missing', async ({ send }) => {
  const missing = await send(getIntent('pi_3NoSuchPaymentIntent0'));
  expect([missing.status, errorOf(missing).code]).toEqual([404, 'resource_missing']);
});
