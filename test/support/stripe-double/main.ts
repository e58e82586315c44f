/**
 * `npm run stripe:double`: the double as a process, for trials of PROVIDER=stripe without Stripe. On
 * 127.0.0.1 at PORT (12110), with the books of LOCALSTRIPE_URL where it is set; each request that moves
 * money takes SLOW_MS milliseconds before it acts, so that there is time to end the service meanwhile.
 */
import { createBooks } from './books.ts';
import { localstripeBooks } from './localstripe.ts';
import { doubleOf } from './server.ts';

const { PORT = '12110', SLOW_MS = '0', LOCALSTRIPE_URL: url = '' } = process.env;
const books = url === '' ? createBooks() : localstripeBooks(url);
const double = await doubleOf(books, Number(PORT));
double.actsAfterMs(Number(SLOW_MS));
process.stdout.write(
  `a double of Stripe, with ${url === '' ? 'its own books' : `the books of ${url}`}: ` +
    `STRIPE_API_URL=${double.url}\n`,
);
// The double alone keeps no process alive.
setInterval(() => undefined, 2 ** 30);
