/** The service in this process with `PROVIDER=stripe`, over a double of Stripe. */
import { type InProcess, NO_RETRIES, openInProcess, signToken } from './service-in-process.ts';
import type { Intent } from './stripe-double/books.ts';
import { stripeDouble } from './stripe-double/server.ts';
import { stripeSignature } from './stripe-signature.ts';

export const STRIPE_KEY = 'sk_test_of_the_service';
export const STRIPE_SECRET = 'whsec_of_the_installation';

export type Reconciled = {
  ok: boolean;
  operations: number;
  notCompared: number;
  differences: { kind: string; paymentId: string; operationId: string; [field: string]: unknown }[];
};

/** How the ledger of a service's provider compares with its log; `query` is that of the route. */
export const reconcile = async (service: InProcess, query = '') => {
  const token = await signToken({ merchant_id: '*', sub: 'auditor', scope: 'audit:read' });
  const path = `/audit/v1/reconcile${query}`;
  return (await service.ask('POST', path, undefined, { token })).json as unknown as Reconciled;
};

/** Without a limit of creates, and asking once, unless `settings` say otherwise. */
export const openOverStripe = async (
  settings: Record<string, string> = {},
  log?: Parameters<typeof openInProcess>[1],
) => {
  const double = await stripeDouble();
  const all: Record<string, string> = {
    ...NO_RETRIES,
    PROVIDER: 'stripe',
    STRIPE_SECRET_KEY: STRIPE_KEY,
    STRIPE_API_URL: double.url,
    STRIPE_WEBHOOK_SECRET: STRIPE_SECRET,
    STRIPE_CREATES_PER_SECOND: '0',
    ...settings,
  };
  const service = await openInProcess(all, log);
  return {
    double,
    service,
    /** Those of the service, for another one over the same double. */
    settings: all,
    /** The PaymentIntent of a payment, as Stripe's books have it. */
    intentOf: (paymentId: string, books = double.books): Intent => {
      const isIts = ({ metadata }: Intent) => metadata.paymentId === paymentId;
      const intent = [...books.intents.values()].find(isIts);
      if (intent === undefined) throw new Error(`Stripe has nothing of ${paymentId}`);
      return intent;
    },
    /** Delivers a notice; null sends no signature at all. */
    deliver: (body: string, signature: string | null = stripeSignature(body, STRIPE_SECRET)) =>
      service.ask('POST', '/webhooks/stripe', body, {
        token: null,
        headers: signature === null ? {} : { 'stripe-signature': signature },
      }),
    [Symbol.asyncDispose]: async () => {
      await service[Symbol.asyncDispose]();
      await double.close();
    },
  };
};
