/**
 * What only Stripe itself can show: the pieces of its documentation that the fences rest on. Opt-in,
 * with a test key, so no money moves; by tokens alone, one request after another.
 */
import { expect } from '@jest/globals';
import { followUpRequest, listRefunds, takeKey } from '../../providers/stripe/requests.ts';
import { authorize, followUp } from '../support/provider-operations.ts';
import { doubtful, unused } from '../support/stripe-itself.ts';

const RACES = 5;
const rejectedByItsKey = { status: 400, body: { error: { type: 'idempotency_error' } } };

doubtful('a test token is described', async ({ provider }) => {
  expect(await provider.describeToken('pm_card_visa', 'm_1')).toMatchObject({
    outcome: 'DESCRIBED',
    brand: 'VISA',
  });
});

for (const kind of ['CAPTURE', 'VOID'] as const)
  doubtful(
    `a key that an update has taken rejects the ${kind} that comes later, which is not carried out`,
    async ({ begun, send, intent }) => {
      const { operation, reference } = await begun('AUTHORIZE');
      const late = followUp(kind, operation, unused());
      expect(await send(takeKey(late.operationId, reference))).toMatchObject({ status: 200 });
      expect(await send(followUpRequest(late, reference))).toMatchObject(rejectedByItsKey);
      expect((await intent(reference)).status).toBe('requires_capture');
    },
  );

doubtful(
  'a key that an update has taken rejects the REFUND that comes later; a charged intent can be updated',
  async ({ begun, send }) => {
    const { operation, reference } = await begun('SALE');
    const late = followUp('REFUND', operation, unused());
    expect(await send(takeKey(late.operationId, reference))).toMatchObject({ status: 200 });
    expect(await send(followUpRequest(late, reference))).toMatchObject(rejectedByItsKey);
    expect((await send(listRefunds({ reference })())).body).toMatchObject({ data: [] });
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

doubtful(
  'a card that requires authentication is declined, for there is no shopper',
  async ({ provider }) => {
    const operation = authorize('4000002760003184', unused());
    expect(await provider.execute(operation)).toMatchObject({
      outcome: 'DECLINED',
      failureCode: 'AUTHENTICATION_REQUIRED',
    });
  },
);
