/**
 * `npm run stripe:double`: the double as a process, for trials of PROVIDER=stripe without Stripe. On
 * 127.0.0.1 at PORT (12110); each request that moves money takes SLOW_MS milliseconds before it acts,
 * so that there is time to end the service meanwhile.
 */
import { stripeDouble } from './server.ts';

const { PORT = '12110', SLOW_MS = '0' } = process.env;
const double = await stripeDouble(Date.now, Number(PORT));
double.actsAfterMs(Number(SLOW_MS));
process.stdout.write(`a double of Stripe: STRIPE_API_URL=${double.url}\n`);
// The double alone keeps no process alive.
setInterval(() => undefined, 2 ** 30);
