/**
 * Stripe's own stripe-mock, which checks the shape of each request against Stripe's description of
 * its API and keeps nothing. Go's checksum database says that its module is the published one.
 */
import { join } from 'node:path';
import { buildWithGo, CACHE, type Engine, lackOf, portsOf, startServer } from './engine.ts';

const VERSION = 'v0.203.0';
const BUILT = join(CACHE, `stripe-mock@${VERSION}`);

/** stripe-mock, which gives a value for STRIPE_MOCK_URL. */
export const stripeMock: Engine = {
  name: 'stripe-mock',
  available: () => lackOf('go'),
  start: async (folder, log) => {
    await buildWithGo(BUILT, `github.com/stripe/stripe-mock@${VERSION}`, log);
    const address = `127.0.0.1:${(await portsOf(folder, 1))[0]}`;
    // Without an address for HTTPS it listens for that on every interface.
    const addresses = ['-http-addr', address, '-https-addr', '127.0.0.1:0'];
    const command = [join(BUILT, 'stripe-mock'), ...addresses];
    const pid = await startServer(folder, command, 'Listening for HTTP at address');
    return { variables: { STRIPE_MOCK_URL: `http://${address}` }, pid };
  },
};
