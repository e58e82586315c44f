/**
 * What only Stripe itself can show: the pieces of its documentation that the fences rest on. Opt-in,
 * with a test key, so no money moves; by tokens alone, one request after another.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import {
  followUpRequest,
  listRefunds,
  takeKey,
} from '../../../command-api/provider/stripe/requests.ts';
import { describeDriver } from '../../support/describe-driver.ts';
import { authorize, followUp } from '../../support/provider-operations.ts';
import {
  openStripeItself,
  type StripeItself,
  skipReason,
  unused,
} from '../../support/stripe-itself.ts';

const TEST_MS_MAX = 120_000;
const RACES = 5;

describeDriver('Stripe itself', { name: 'with a test key', skip: skipReason() }, () => {
  let stripe: StripeItself;
  beforeAll(() => {
    stripe = openStripeItself();
  });
  afterAll(() => stripe.close());

  const statusOf = async (reference: string) => (await stripe.intent(reference)).status;
  const rejectedByItsKey = { status: 400, body: { error: { type: 'idempotency_error' } } };

  test('a test token is described', async () => {
    expect(await stripe.provider.describeToken('pm_card_visa', 'm_1')).toMatchObject({
      outcome: 'DESCRIBED',
      brand: 'VISA',
    });
  });

  describe('a key that an update has taken', () => {
    test.each(['CAPTURE', 'VOID'] as const)(
      'rejects the %s that comes later, which is not carried out',
      async (kind) => {
        const { operation, reference } = await stripe.begun('AUTHORIZE');
        const late = followUp(kind, operation, unused());
        expect(await stripe.send(takeKey(late.operationId, reference))).toMatchObject({
          status: 200,
        });
        expect(await stripe.send(followUpRequest(late, reference))).toMatchObject(rejectedByItsKey);
        expect(await statusOf(reference)).toBe('requires_capture');
      },
      TEST_MS_MAX,
    );

    test(
      'rejects the REFUND that comes later, which is not carried out; a charged intent can be updated',
      async () => {
        const { operation, reference } = await stripe.begun('SALE');
        const late = followUp('REFUND', operation, unused());
        expect(await stripe.send(takeKey(late.operationId, reference))).toMatchObject({
          status: 200,
        });
        expect(await stripe.send(followUpRequest(late, reference))).toMatchObject(rejectedByItsKey);
        expect((await stripe.send(listRefunds({ reference }, undefined))).body).toMatchObject({
          data: [],
        });
      },
      TEST_MS_MAX,
    );
  });

  test(
    'a capture that was rejected is replayed with its 400',
    async () => {
      const { operation, reference } = await stripe.begun('AUTHORIZE');
      const tooMuch = followUp('CAPTURE', operation, { ...unused(), amount: operation.amount + 1 });
      const first = await stripe.send(followUpRequest(tooMuch, reference));
      const again = await stripe.send(followUpRequest(tooMuch, reference));
      expect([first.status, again.status]).toEqual([400, 400]);
      expect(again.headers).toMatchObject({ 'idempotent-replayed': 'true' });
    },
    TEST_MS_MAX,
  );

  test(
    'a call and its fence at once: what is fenced is not held',
    async () => {
      for (let round = 0; round < RACES; round += 1) {
        const operation = authorize(undefined, unused());
        const requestedAt = new Date().toISOString();
        let fence: Promise<unknown> = Promise.resolve();
        let reference = '';
        await stripe.provider.execute(operation, async (opened) => {
          reference = opened;
          fence = stripe.provider.fence({ ...operation, reference, requestedAt });
        });
        await fence;
        const { outcome: known } = await stripe.provider.fence({
          ...operation,
          reference,
          requestedAt,
        });
        const held = (await statusOf(reference)) === 'requires_capture';
        expect([known, held]).toEqual(held ? ['APPROVED', true] : ['FENCED', false]);
      }
    },
    TEST_MS_MAX,
  );

  test(
    'a card that requires authentication is declined, for there is no shopper',
    async () => {
      const operation = authorize('4000002760003184', unused());
      expect(await stripe.provider.execute(operation)).toMatchObject({
        outcome: 'DECLINED',
        failureCode: 'AUTHENTICATION_REQUIRED',
      });
    },
    TEST_MS_MAX,
  );
});
