/**
 * What only Stripe itself can show: the pieces of its documentation that the fences rest on. Opt-in,
 * with a test key, so no money moves; by tokens alone, one request after another.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import {
  type StripeClient,
  startDeadline,
  stripeClient,
} from '../../../command-api/provider/stripe/client.ts';
import {
  followUpRequest,
  getIntent,
  listRefunds,
  type StripeRequest,
  takeKey,
} from '../../../command-api/provider/stripe/requests.ts';
import { paymentIntent } from '../../../command-api/provider/stripe/shapes.ts';
import {
  STRIPE_API_URL_DEFAULT,
  STRIPE_API_VERSION_DEFAULT,
} from '../../../shared/runtime/settings/table.ts';
import { describeDriver } from '../../support/describe-driver.ts';
import { type LoggedProvider, withLog } from '../../support/logged-provider.ts';
import { authorize, followUp } from '../../support/provider-operations.ts';
import { driverOver } from '../../support/stripe-fault-rounds.ts';
import { approved } from './opened.ts';

const secretKey = process.env.STRIPE_TEST_KEY ?? '';
const TIMEOUT_MS = 25_000;
const TEST_MS_MAX = 120_000;
const RACES = 5;

const skipReason = (): string | undefined => {
  if (secretKey === '') return 'STRIPE_TEST_KEY is not set';
  // Never a live key: money would move.
  return /^(sk|rk)_test_/.test(secretKey) ? undefined : 'STRIPE_TEST_KEY is no test key';
};

/** Unlike those of the other suites, these ids last: Stripe keeps a key for a day. */
const unused = (): { operationId: string } => ({ operationId: `live_${crypto.randomUUID()}` });

describeDriver('Stripe itself', { name: 'with a test key', skip: skipReason() }, () => {
  let client: StripeClient;
  let provider: LoggedProvider;
  beforeAll(() => {
    client = stripeClient({
      url: STRIPE_API_URL_DEFAULT,
      version: STRIPE_API_VERSION_DEFAULT,
      connectTimeoutMs: 5_000,
    });
    const options = { accounts: { installation: { secretKey } }, timeoutMs: TIMEOUT_MS };
    provider = withLog(driverOver(STRIPE_API_URL_DEFAULT, options));
  });
  afterAll(async () => {
    await provider.close();
    await client.close();
  });

  const send = async (request: StripeRequest) => {
    const deadline = startDeadline(TIMEOUT_MS);
    try {
      const response = await client.send(request, { secretKey }, deadline);
      if ('sent' in response) throw new Error(`no response: ${response.reason}`);
      return response;
    } finally {
      deadline.end();
    }
  };
  const statusOf = async (reference: string) =>
    paymentIntent.parse((await send(getIntent(reference))).body).status;
  const begun = async (kind: 'AUTHORIZE' | 'SALE') => {
    const operation = authorize(undefined, { kind, ...unused() });
    const outcome = await provider.execute(operation);
    expect(outcome).toMatchObject(approved);
    const reference = 'providerReference' in outcome ? (outcome.providerReference ?? '') : '';
    return { operation, reference };
  };
  const rejectedByItsKey = { status: 400, body: { error: { type: 'idempotency_error' } } };

  test('a test token is described', async () => {
    expect(await provider.describeToken('pm_card_visa', 'm_1')).toMatchObject({
      outcome: 'DESCRIBED',
      brand: 'VISA',
    });
  });

  describe('a key that an update has taken', () => {
    test.each(['CAPTURE', 'VOID'] as const)(
      'rejects the %s that comes later, which is not carried out',
      async (kind) => {
        const { operation, reference } = await begun('AUTHORIZE');
        const late = followUp(kind, operation, unused());
        expect(await send(takeKey(late.operationId, reference))).toMatchObject({ status: 200 });
        expect(await send(followUpRequest(late, reference))).toMatchObject(rejectedByItsKey);
        expect(await statusOf(reference)).toBe('requires_capture');
      },
      TEST_MS_MAX,
    );

    test(
      'rejects the REFUND that comes later, which is not carried out; a charged intent can be updated',
      async () => {
        const { operation, reference } = await begun('SALE');
        const late = followUp('REFUND', operation, unused());
        expect(await send(takeKey(late.operationId, reference))).toMatchObject({ status: 200 });
        expect(await send(followUpRequest(late, reference))).toMatchObject(rejectedByItsKey);
        expect((await send(listRefunds({ reference }, undefined))).body).toMatchObject({
          data: [],
        });
      },
      TEST_MS_MAX,
    );
  });

  test(
    'a capture that was rejected is replayed with its 400',
    async () => {
      const { operation, reference } = await begun('AUTHORIZE');
      const tooMuch = followUp('CAPTURE', operation, { ...unused(), amount: operation.amount + 1 });
      const first = await send(followUpRequest(tooMuch, reference));
      const again = await send(followUpRequest(tooMuch, reference));
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
        await provider.execute(operation, async (opened) => {
          reference = opened;
          fence = provider.fence({ ...operation, reference, requestedAt });
        });
        await fence;
        const { outcome: known } = await provider.fence({ ...operation, reference, requestedAt });
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
      expect(await provider.execute(operation)).toMatchObject({
        outcome: 'DECLINED',
        failureCode: 'AUTHENTICATION_REQUIRED',
      });
    },
    TEST_MS_MAX,
  );
});
