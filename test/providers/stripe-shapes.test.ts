/**
 * Every request of Stripe's driver, sent to Stripe's own stripe-mock: it checks each one against
 * Stripe's description of the API, and responds with an object of the kind that Stripe would.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { z } from 'zod';
import { stripeClient } from '../../providers/stripe/client.ts';
import * as requests from '../../providers/stripe/requests.ts';
import {
  confirmationToken,
  dispute,
  listOf,
  paymentIntent,
  paymentMethod,
  refund,
  refundWithIntent,
} from '../../providers/stripe/shapes.ts';
import { CardSecret } from '../../shared/payment/card.ts';
import type { ThreeDSecure } from '../../shared/payment/fields.ts';
import { STRIPE_API_VERSION_DEFAULT } from '../../shared/runtime/settings/table.ts';
import { describeDriver } from '../support/describe-driver.ts';
import { authorize, CVV, followUp } from '../support/provider-operations.ts';
import { HANGS_MS } from '../support/time-bounds.ts';

const url = process.env.STRIPE_MOCK_URL ?? '';
/** stripe-mock takes letters and digits alone. */
const ACCOUNT = { secretKey: 'sk_test_shapes' };

type Case = [request: requests.StripeRequest, readAs: z.ZodType];
/** Each function of requests.ts that makes a request: without a case for it this does not compile. */
type Made = {
  [Name in keyof typeof requests]: (typeof requests)[Name] extends (
    ...args: never[]
  ) => requests.StripeRequest | requests.PageOf
    ? Name
    : never;
}[keyof typeof requests];

const create = authorize(undefined, { descriptor: 'Coffee & Cake' });
const { operationId } = create;
const PI = 'pi_3Shape';
const CARD = {
  number: '4242424242424242',
  holderName: 'Jane Doe',
  expiryMonth: '01',
  expiryYear: '2030',
  cvv: CVV,
};
const SHOPPER = {
  consumer: { firstName: 'Jane', email: 'jane.doe@example.com' },
  billing: {
    address: { street: '1 Main St', city: 'Boise', state: 'ID', zip: '83702', country: 'US' },
  },
};
const THREE_D_SECURE: ThreeDSecure = {
  version: '2.2.0',
  eci: '05',
  cryptogram: `${'A'.repeat(27)}=`,
  transactionId: '4bd1d5b8-7c1e-4b42-9d55-3f1a8c2e6b70',
  exemption: 'LOW_RISK',
};
const withResults = {
  ...create,
  card: new CardSecret({ ...CARD, threeDSecure: THREE_D_SECURE }),
};
const DAY = { from: 1_790_000_000, to: 1_790_086_400 };

/** Its PaymentIntent is expanded, and has no payment of ours in the mock. */
const disputeWithIntent = dispute.extend({
  payment_intent: z.object({ metadata: z.record(z.string(), z.string()) }),
});
const event = z.object({ object: z.literal('event'), data: z.object({ object: z.object({}) }) });
const intents = listOf(paymentIntent);
const refunds = listOf(refund);
const CASES: Readonly<Record<Made, readonly Case[]>> = {
  openIntent: [
    [requests.openIntent(create), paymentIntent],
    [requests.openIntent({ ...create, kind: 'SALE', customer: 'cus_3Shape' }), paymentIntent],
  ],
  makePaymentMethod: [[requests.makePaymentMethod(CARD, SHOPPER), paymentMethod]],
  confirmIntent: [
    [requests.confirmIntent(create, PI, 'pm_card_visa'), paymentIntent],
    [requests.confirmIntent(withResults, PI, 'ctoken_3Shape'), paymentIntent],
    [
      requests.confirmIntent(
        { ...create, authentication: { returnUrl: 'https://shop.example/back' } },
        PI,
        'pm_card_visa',
      ),
      paymentIntent,
    ],
    [
      requests.confirmIntent({ ...create, initiatedBy: 'MERCHANT' }, PI, 'pm_card_visa'),
      paymentIntent,
    ],
  ],
  nameVoid: [[requests.nameVoid(operationId, PI), paymentIntent]],
  followUpRequest: [
    [requests.followUpRequest(followUp('CAPTURE', create), PI), paymentIntent],
    [requests.followUpRequest(followUp('VOID', create), PI), paymentIntent],
    [requests.followUpRequest(followUp('REFUND', create), PI), refund],
  ],
  nameFence: [[requests.nameFence('op_1', PI), paymentIntent]],
  cancelAsFence: [[requests.cancelAsFence(PI), paymentIntent]],
  takeKey: [[requests.takeKey(operationId, PI), paymentIntent]],
  getIntent: [[requests.getIntent(PI), paymentIntent]],
  searchOurs: [[requests.searchOurs(), intents]],
  searchIntent: [[requests.searchIntent(operationId), intents]],
  getToken: [
    [requests.getToken('ctoken_3Shape'), confirmationToken],
    [requests.getToken('pm_card_visa'), paymentMethod],
  ],
  listRefunds: [
    [requests.listRefunds({ reference: PI })(), refunds],
    [requests.listRefunds(DAY)('re_3Shape'), listOf(refundWithIntent)],
  ],
  listDisputes: [
    [requests.listDisputes({ reference: PI })(), listOf(dispute)],
    [requests.listDisputes({ reference: PI })('du_3Shape'), listOf(dispute)],
    [requests.listDisputes(DAY)(), listOf(disputeWithIntent)],
  ],
  listIntents: [[requests.listIntents(DAY)(PI), intents]],
  listEnds: [
    [requests.listEnds(DAY.from)(), listOf(event)],
    [requests.listEnds(DAY.from)('evt_3Shape'), listOf(event)],
  ],
};
const all = Object.entries(CASES).flatMap(([name, cases]) =>
  cases.map((one, index): [string, ...Case] => [`${name} ${index + 1}`, ...one]),
);

describeDriver(
  'Stripe, the shape of each request',
  {
    name: 'stripe-mock',
    skip: url === '' ? 'STRIPE_MOCK_URL is not set; npm run engines -- up gives one' : undefined,
  },
  () => {
    let client: ReturnType<typeof stripeClient>;
    beforeAll(() => {
      const version = STRIPE_API_VERSION_DEFAULT;
      client = stripeClient({ url, version, connectTimeoutMs: HANGS_MS });
    });
    afterAll(() => client.close());

    const send = (request: requests.StripeRequest) =>
      client.send(request, ACCOUNT, AbortSignal.timeout(HANGS_MS));

    test.each(all)('%s is accepted, and its response is read', async (_name, request, readAs) => {
      const response = await send(request);
      expect(response).toMatchObject({ status: 200 });
      expect(readAs.safeParse(response.body).error).toBeUndefined();
    });
  },
);
