/** gaps §4, S1, S2 with Stripe: numbers go to it in one kind of body and nowhere else, tokens too. */
import { expect, test } from '@jest/globals';
import { STRIPE_API_VERSION_DEFAULT } from '../../shared/runtime/settings/table.ts';
import {
  type Canary,
  cardDataIn,
  expectNoCardData,
  testCard,
  withToken,
} from '../support/canary.ts';
import { type StripeDouble, stripeDouble } from '../support/stripe-double/server.ts';

/** As Stripe.js does it in the shop: the service never hears of the number. */
const tokenFor =
  ({ url }: StripeDouble) =>
  async ({ number, cvv }: Canary): Promise<string> => {
    const response = await fetch(`${url}/v1/payment_methods`, {
      method: 'POST',
      headers: {
        authorization: 'Bearer sk_test_of_the_shop',
        'stripe-version': STRIPE_API_VERSION_DEFAULT,
      },
      body: new URLSearchParams({ type: 'card', 'card[number]': number, 'card[cvc]': cvv }),
    });
    return ((await response.json()) as { id: string }).id;
  };

test('no card number, CVV or token is in any file, log line, response or metric', async () => {
  const double = await stripeDouble();
  const env = {
    PROVIDER: 'stripe',
    STRIPE_SECRET_KEY: 'sk_test_of_the_service',
    STRIPE_API_URL: double.url,
    STRIPE_CREATES_PER_SECOND: '0',
    STRIPE_TEST_TOKENS: 'false',
    PROVIDER_TIMEOUT_MS: '5000',
    // The retries of recovery do not meet the faults that are planned for the next path.
    RECOVERY_DELAYS_MS: '600000',
  };
  const fails = (step: 'method' | 'confirm', fault: Parameters<StripeDouble['plan']>[1]) =>
    testCard('4242424242424242', 503, () => double.plan(step, fault));
  const token = withToken(tokenFor(double));
  try {
    await expectNoCardData(env, [
      testCard('4000000000000002', 402),
      testCard('4000000000000127', 402),
      fails('method', '500 after acting'),
      fails('method', 'HTML'),
      fails('method', '401'),
      fails('method', 'hangs before acting'),
      fails('confirm', 'cut JSON'),
      fails('confirm', 'reset after acting'),
      fails('confirm', '500 before acting'),
      ...Array.from({ length: 20 }, () => token),
    ]);
    // The one place where a number may be: the body that makes a payment method, which is Stripe's.
    const sent = double.received.map(({ step, path, params, headers }) => ({
      path,
      headers,
      params: step === 'method' ? [] : [...params].filter(([name]) => name !== 'payment_method'),
    }));
    const methods = double.received.filter(({ step }) => step === 'method');
    expect(methods.length).toBeGreaterThan(100);
    expect(methods.filter(({ params }) => params.has('card[number]'))).toHaveLength(methods.length);
    const described = /\/v1\/payment_methods\/pm_/;
    const others = sent.filter(({ path }) => !described.test(path));
    expect(cardDataIn(JSON.stringify(others))).toEqual([]);
  } finally {
    await double.close();
  }
});
