/**
 * A checkout: PAYMENTS_TOKEN=… npx node examples/checkout/server.ts, then http://127.0.0.1:3000
 * Environment: PAYMENTS_URL, PAYMENTS_TOKEN (a merchant's), PORT. It needs Node from 22.18 on
 * and nothing else of this project but token.json, the sample order.
 */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';

const { PAYMENTS_URL = 'http://127.0.0.1:8080', PAYMENTS_TOKEN, PORT = '3000' } = process.env;
const shop = `http://127.0.0.1:${PORT}`;
const read = (file: string) => readFileSync(new URL(file, import.meta.url), 'utf8');
// A shop takes these from its own database: the cart and the customer; and the payment of each order,
// which has to outlive a restart.
const sale = JSON.parse(read('../token.json'));
const paymentOf = new Map<string, string>();

type Payment = {
  paymentId?: string;
  status: string;
  nextAction?: { url?: string };
  transactions?: { failure?: { advice: string } }[];
  error?: string;
};
const call = async (path: string, headers: object = {}, body?: object) => {
  const response = await fetch(`${PAYMENTS_URL}/api/v1/payments${path}`, {
    method: body ? 'POST' : 'GET',
    headers: { authorization: `Bearer ${PAYMENTS_TOKEN}`, ...headers },
    signal: AbortSignal.timeout(60_000),
    ...(body && { body: JSON.stringify(body) }),
  });
  const payment = (await response.json()) as Payment;
  return { payment, location: response.headers.get('location') };
};

const STATES: Record<string, string> = {
  PENDING: 'waiting',
  FAILED: 'declined',
  AUTHORIZED: 'paid',
  CAPTURED: 'paid',
};
const outcomeOf = async (order: string) => {
  const id = paymentOf.get(order);
  if (id === undefined) return { state: 'form' };
  const { payment } = await call(`/${id}`);
  const state = STATES[payment.status] ?? 'failed';
  return { state, advice: payment.transactions?.[0]?.failure?.advice };
};

/** Gives the address that the shopper goes to next. */
const pay = async (order: string, request: IncomingMessage): Promise<string> => {
  const back = `${shop}/?order=${order}`;
  if (!(Number(request.headers['content-length']) <= 1_000)) throw new Error('not our form');
  const form = new URLSearchParams(await text(request));
  const after = paymentOf.get(order) ?? '';
  const { state } = await outcomeOf(order);
  // The form says which declined payment it follows, so an old form or a second click pays nothing.
  if (form.get('after') !== after || !['form', 'declined'].includes(state)) return back;
  const card = {
    token: form.get('token'),
    holderName: form.get('holder'),
    authentication: { returnUrl: back },
  };
  const paymentMethod = { type: 'CARD', card };
  const body = { ...sale, merchantReference: order, metadata: { order }, paymentMethod };
  const headers = { 'content-type': 'application/json', 'idempotency-key': `${order}/${after}` };
  const { payment, location } = await call('', headers, body);
  // Where the outcome is not known yet, Location names the payment.
  const id = payment.paymentId ?? location?.split('/').at(-1);
  if (id === undefined) throw new Error(payment.error);
  paymentOf.set(order, id);
  return payment.nextAction?.url ?? back;
};

const page = read('index.html');
const render = (order: string, state: string, advice = 'RETRY_LATER') =>
  Object.entries({ order, state, advice, after: paymentOf.get(order) ?? '' }).reduce(
    (html, [name, value]) => html.replaceAll(`{{${name}}}`, value),
    page,
  );

createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? '/', shop);
  const order = searchParams.get('order') ?? `order-${randomBytes(6).toString('base64url')}`;
  const led = (location: string) => response.writeHead(303, { location }).end();
  if (pathname !== '/' || !/^order-[\w-]{8}$/.test(order)) return response.writeHead(404).end();
  if (!searchParams.has('order')) return led(`/?order=${order}`);
  response.setHeader('content-type', 'text/html; charset=utf-8');
  response.setHeader('cache-control', 'no-store');
  try {
    if (request.method === 'POST') return led(await pay(order, request));
    const { state, advice } = await outcomeOf(order);
    response.end(render(order, state, advice));
  } catch (error) {
    console.error(error);
    response.writeHead(502).end(render(order, 'failed'));
  }
}).listen(Number(PORT), '127.0.0.1', () => console.log(`the checkout is at ${shop}`));
