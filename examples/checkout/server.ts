/**
 * A checkout: PAYMENTS_TOKEN=… npx node examples/checkout/server.ts, then http://127.0.0.1:3000
 * Environment: PAYMENTS_URL, PAYMENTS_TOKEN (a merchant's), PORT, and with Stripe STRIPE_PUBLISHABLE_KEY. It needs Node from 22.18 on
 * and nothing else of this project but token.json, the sample order.
 */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';

const { PAYMENTS_URL = 'http://127.0.0.1:8080', PAYMENTS_TOKEN, PORT = '3000' } = process.env;
const { STRIPE_PUBLISHABLE_KEY: key = '' } = process.env;
const library = key ? 'https://js.stripe.com/v3/' : `${PAYMENTS_URL}/simulator/browser.js`;
const shop = `http://127.0.0.1:${PORT}`;
const read = (file: string) => readFileSync(new URL(file, import.meta.url), 'utf8');
const [page, sale] = [read('index.html'), JSON.parse(read('../token.json'))];

const call = async (query: string, headers: object = {}, body?: object) => {
  const response = await fetch(`${PAYMENTS_URL}/api/v1/payments${query}`, {
    method: body ? 'POST' : 'GET',
    headers: { authorization: `Bearer ${PAYMENTS_TOKEN}`, ...headers },
    signal: AbortSignal.timeout(60_000),
    ...(body && { body: JSON.stringify(body) }),
  });
  return JSON.parse(await response.text());
};
/** The order's last payment, declined ones included. */
const lastOf = async (order: string): Promise<Record<'status' | 'after' | 'advice', string>> => {
  const [last] = (await call(`?merchantReference=${order}`)).payments;
  const { status = 'NEW', paymentId: after = '', transactions = [] } = last ?? {};
  return { status, after, advice: transactions[0]?.failure?.advice ?? '' };
};

/** Gives the address that the shopper goes to next. */
const pay = async (order: string, form: URLSearchParams): Promise<string> => {
  const back = `${shop}/?order=${order}`;
  const { status, after } = await lastOf(order);
  // The form says which declined payment it follows, so an old form or a second click pays nothing.
  if (form.get('after') !== after || !['NEW', 'FAILED'].includes(status)) return back;
  const authentication = { returnUrl: back };
  const card = { token: form.get('token'), holderName: form.get('holder'), authentication };
  const paymentMethod = { type: 'CARD', card };
  const body = { ...sale, merchantReference: order, metadata: { order }, paymentMethod };
  // Two forms at once have the same key: the order is charged once.
  const headers = { 'content-type': 'application/json', 'idempotency-key': `${order}/${after}` };
  const { nextAction, error } = await call('', headers, body);
  if (error !== undefined) throw new Error(error);
  return nextAction?.url ?? back;
};

const show = (payment: Record<string, string>): string => {
  const shown: Record<string, string> = { library, key, ...payment };
  return page.replace(/{{(\w+)}}/g, (_, name) => shown[name] ?? '');
};

createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? '/', shop);
  const order = searchParams.get('order') ?? `order-${randomBytes(6).toString('base64url')}`;
  const lead = (location: string) => response.writeHead(303, { location }).end();
  if (pathname !== '/' || !/^order-[\w-]{8}$/.test(order)) return response.writeHead(404).end();
  if (!searchParams.has('order')) return lead(`/?order=${order}`);
  response.setHeader('content-type', 'text/html; charset=utf-8');
  response.setHeader('cache-control', 'no-store');
  try {
    if (request.method === 'POST') {
      if (!(Number(request.headers['content-length']) <= 1_000)) throw new Error('not our form');
      return lead(await pay(order, new URLSearchParams(await text(request))));
    }
    response.end(show({ order, ...(await lastOf(order)) }));
  } catch (error) {
    console.error(error);
    response.writeHead(502).end(show({ order, status: 'UNKNOWN' }));
  }
}).listen(Number(PORT), '127.0.0.1', () => console.log(`the checkout is at ${shop}`));
