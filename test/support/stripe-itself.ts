/** What the tests of Stripe itself share: a test key, so no money moves, and requests one after another. */
import { describe, expect, test } from '@jest/globals';
import { stripeClient } from '../../providers/stripe/client.ts';
import { getIntent, type StripeRequest } from '../../providers/stripe/requests.ts';
import { type PaymentIntent, paymentIntent } from '../../providers/stripe/shapes.ts';
import {
  STRIPE_API_URL_DEFAULT,
  STRIPE_API_VERSION_DEFAULT,
} from '../../shared/runtime/settings/table.ts';
import { type LoggedProvider, withLog } from './logged-provider.ts';
import { authorize } from './provider-operations.ts';
import { driverOver } from './stripe-fault-rounds.ts';

type TestKey = 'STRIPE_TEST_KEY' | 'STRIPE_RESTRICTED_TEST_KEY';

/** Of the double only to see that the tests themselves are in order. */
const URL_OF_STRIPE = process.env.STRIPE_TEST_URL ?? STRIPE_API_URL_DEFAULT;
const TIMEOUT_MS = 25_000;
const TEST_MS_MAX = 120_000;

/** Why Stripe cannot be asked; never a live key: money would move. */
const skipReason = (name: TestKey): string | undefined => {
  const key = process.env[name] ?? '';
  if (key === '') return `${name} is not set`;
  return /^(sk|rk)_test_/.test(key) ? undefined : `${name} is no test key`;
};

/** Unlike those of the other suites, these ids last: Stripe keeps a key for a day. */
export const unused = (): { operationId: string } => ({
  operationId: `live_${crypto.randomUUID()}`,
});

export type StripeItself = {
  provider: LoggedProvider;
  send(request: StripeRequest): Promise<{ status: number; body: unknown; headers: object }>;
  intent(reference: string): Promise<PaymentIntent>;
  /** An operation that Stripe has carried out, and its PaymentIntent. */
  begun(
    kind: 'AUTHORIZE' | 'SALE',
  ): Promise<{ operation: ReturnType<typeof authorize>; reference: string }>;
  close(): Promise<void>;
};

const openStripeItself = (name: TestKey): StripeItself => {
  const secretKey = process.env[name] ?? '';
  const client = stripeClient({
    url: URL_OF_STRIPE,
    version: STRIPE_API_VERSION_DEFAULT,
    connectTimeoutMs: 5_000,
  });
  const options = { accounts: { installation: { secretKey } }, timeoutMs: TIMEOUT_MS };
  const provider = withLog(driverOver(URL_OF_STRIPE, options));
  const send: StripeItself['send'] = async (request) => {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const response = await client.send(request, { secretKey }, signal);
    if (response.lost !== undefined) throw new Error(`no response: ${response.lost.reason}`);
    return response;
  };
  return {
    provider,
    send,
    intent: async (reference) => paymentIntent.parse((await send(getIntent(reference))).body),
    begun: async (kind) => {
      const operation = authorize(undefined, { kind, ...unused() });
      const outcome = await provider.execute(operation);
      expect(outcome).toMatchObject({ outcome: 'APPROVED', providerReference: expect.any(String) });
      const reference = 'providerReference' in outcome ? (outcome.providerReference ?? '') : '';
      return { operation, reference };
    },
    close: async () => {
      await provider.close();
      await client.close();
    },
  };
};

/** One point that only Stripe can tell: skipped by its own name, with the reason. */
export const doubtful = (
  point: string,
  look: (stripe: StripeItself) => Promise<void>,
  key: TestKey = 'STRIPE_TEST_KEY',
): void => {
  const skip = skipReason(key);
  const run = async (): Promise<void> => {
    const stripe = openStripeItself(key);
    await look(stripe).finally(stripe.close);
  };
  if (skip === undefined) test(point, run, TEST_MS_MAX);
  else describe(point, () => test.skip(`(skipped: ${skip})`, run));
};
