import { localstripeBooks } from '../../support/stripe-double/localstripe.ts';
import { doubleOf } from '../../support/stripe-double/server.ts';
import { driverOver } from '../../support/stripe-fault-rounds.ts';
import { describeProvider } from './describe-provider.ts';

const url = process.env.LOCALSTRIPE_URL ?? '';
type Double = Awaited<ReturnType<typeof doubleOf>>;
/** What is kept outlives a driver: one double for each folder of the tests. */
let kept: { folder: string; double: Double } | undefined;

describeProvider({
  name: 'Stripe over localstripe',
  skip: url === '' ? 'LOCALSTRIPE_URL is not set (npm run engines -- up)' : undefined,
  simulated: false,
  token: 'pm_card_visa',
  declinesAs: 'CARD_DECLINED',
  open: async (folder, timeoutMs) => {
    if (kept?.folder !== folder) {
      await kept?.double.close();
      kept = { folder, double: await doubleOf(localstripeBooks(url)) };
    }
    return driverOver(kept.double.url, { timeoutMs });
  },
});
