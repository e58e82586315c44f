import { type StripeDouble, stripeDouble } from '../support/stripe-double/server.ts';
import { driverOver } from '../support/stripe-fault-rounds.ts';
import { describeProvider } from './describe-provider.ts';

/** What Stripe keeps outlives a driver: one double for each folder of the tests. */
let kept: { folder: string; double: StripeDouble } | undefined;

describeProvider({
  name: 'Stripe over its double',
  simulated: false,
  token: 'pm_card_visa',
  open: async (folder, timeoutMs) => {
    if (kept?.folder !== folder) {
      await kept?.double.close();
      kept = { folder, double: await stripeDouble() };
    }
    return driverOver(kept.double.url, { timeoutMs });
  },
});
