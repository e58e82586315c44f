/**
 * A checkout: PAYMENTS_TOKEN=… npx node examples/checkout/server.ts, then http://127.0.0.1:3000
 * Environment: PAYMENTS_URL, PAYMENTS_TOKEN (a merchant's), PORT, SHOP_URL, WEBHOOK_SECRET, and with Stripe
 * STRIPE_PUBLISHABLE_KEY. It needs Node from 22.18 on and nothing else of this project but token.json, the
 * sample order. What lies in a Map here belongs into your database.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';

const { PAYMENTS_URL = 'http://127.0.0.1:8080', PAYMENTS_TOKEN, PORT = '3000' } = process.env;
const { SHOP_URL: shop = `http://127.0.0.1:${PORT}`, WEBHOOK_SECRET = '' } = process.env;
const { STRIPE_PUBLISHABLE_KEY: key = '' } = process.env;
const library = key ? 'https://js.stripe.com/v3/' : `${PAYMENTS_URL}/simulator/browser.js`;
const read = (file: string) => readFileSync(new URL(file, import.meta.url), 'utf8');
const [page, style] = [read('index.html'), read('style.css')];
const sale = JSON.parse(read('../token.json'));

type Payment = {
  paymentId: string;
  status: string;
  amount: number;
  currency: string;
  transactions: { failure?: { advice: string } }[];
};
type Order = { bankUrl?: string; isSent?: true };
const orders = new Map<string, Order>();
/** Declines by order and by the shopper's address: a thief tests many stolen cards in one shop. */
const declines = new Map<string, number>();
const DECLINES_MAX = 5;
setInterval(() => declines.clear(), 600_000).unref();

/** Gives 4xx and 503 too; throws where the service cannot be reached, or does not take the token. */
const call = async (query: string, headers: object = {}, body?: object) => {
  const response = await fetch(`${PAYMENTS_URL}/api/v1/payments${query}`, {
    method: body ? 'POST' : 'GET',
    headers: { authorization: `Bearer ${PAYMENTS_TOKEN}`, ...headers },
    signal: AbortSignal.timeout(60_000),
    ...(body && { body: JSON.stringify(body) }),
  });
  const json = JSON.parse(await response.text());
  if ([401, 403].includes(response.status) || (!body && !response.ok))
    throw new Error(`the payment service says ${response.status}: ${json.details ?? json.message}`);
  return { status: response.status, json, outcome: response.headers.get('payment-outcome') };
};

/** Paid is what the order costs, not whatever was captured under its number. */
const isOtherAmount = ({ amount, currency }: Payment): boolean =>
  amount !== sale.amount || currency !== sale.currency;

/** The order's last payment, declined ones included. */
const lastOf = async (order: string) => {
  const [last] = (await call(`?merchantReference=${order}`)).json.payments as Payment[];
  if (last === undefined) return { status: 'NEW', after: '', advice: '' };
  const status = isOtherAmount(last) ? 'OTHER_AMOUNT' : last.status;
  return { status, after: last.paymentId, advice: last.transactions[0]?.failure?.advice ?? '' };
};

/** Gives what the shopper sees next: an address, or a status of the page. */
const pay = async (order: string, form: URLSearchParams, address: string) => {
  const back = `/?order=${order}`;
  const { status, after } = await lastOf(order);
  // The form says which declined payment it follows, so an old form or a second click pays nothing.
  if (form.get('after') !== after || !['NEW', 'FAILED'].includes(status)) return { back };
  const counted = [order, address];
  if (counted.some((one) => (declines.get(one) ?? 0) >= DECLINES_MAX))
    return { status: 'TOO_MANY' };
  const authentication = { returnUrl: `${shop}${back}` };
  const card = { token: form.get('token'), holderName: form.get('holder'), authentication };
  const paymentMethod = { type: 'CARD', card };
  const body = { ...sale, merchantReference: order, metadata: { order }, paymentMethod };
  // Two forms at once have the same key: the order is charged once.
  const headers = { 'content-type': 'application/json', 'idempotency-key': `${order}/${after}` };
  const created = await call('', headers, body);
  if (created.status >= 400)
    for (const one of counted) declines.set(one, (declines.get(one) ?? 0) + 1);
  const bankUrl = created.json.nextAction?.url;
  orders.set(order, { ...orders.get(order), ...(bankUrl && { bankUrl }) });
  if (created.status < 400 || created.status === 402) return { back: bankUrl ?? back };
  console.error(`${order}: ${created.status}`, created.json.details);
  // 400 and 422: nothing was stored. 503 says itself whether something may have been charged.
  const isRefused = created.status < 500 || created.outcome === 'NOT_CHARGED';
  return { status: isRefused ? 'REFUSED' : 'UNKNOWN' };
};

/** Signed as Standard Webhooks has it, and not older than five minutes. */
const isSigned = ({ headers }: IncomingMessage, body: Buffer): boolean => {
  const [id, time] = [headers['webhook-id'], headers['webhook-timestamp']];
  const secret = Buffer.from(WEBHOOK_SECRET.replace('whsec_', ''), 'base64');
  const own = Buffer.from(
    `v1,${createHmac('sha256', secret).update(`${id}.${time}.${body}`).digest('base64')}`,
  );
  const given = String(headers['webhook-signature'] ?? '')
    .split(' ')
    .map((one) => Buffer.from(one));
  const isGood = given.some((one) => one.length === own.length && timingSafeEqual(one, own));
  return isGood && WEBHOOK_SECRET !== '' && Math.abs(Date.now() / 1000 - Number(time)) <= 300;
};

type Message = { type: string; data: { payment?: Payment & { merchantReference: string } } };

/** Goods go out here, not on the page: a shopper may never come back to it. */
const sendGoods = ({ type, data: { payment } }: Message): void => {
  if (type !== 'payment.captured' || payment === undefined || isOtherAmount(payment)) return;
  const order = orders.get(payment.merchantReference);
  // A message may come twice.
  if (order === undefined || order.isSent) return;
  order.isSent = true;
  console.log(`${payment.merchantReference} is paid: send the goods`);
};

const bodyOf = async (request: IncomingMessage, bytesMax: number): Promise<Buffer> => {
  const parts: Buffer[] = [];
  for await (const part of request) {
    parts.push(part);
    if (parts.reduce((sum, { length }) => sum + length, 0) > bytesMax)
      throw new Error('the body is too large');
  }
  return Buffer.concat(parts);
};

const POLICY = [
  "default-src 'none'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  `script-src {nonce} ${new URL(library).origin}`,
  'connect-src https://api.stripe.com',
  'frame-src https://js.stripe.com https://hooks.stripe.com',
  // The form leads on to the bank of the shopper, whose address is not known beforehand.
  "form-action 'self' https: http://127.0.0.1:* http://localhost:*",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

const ORDERED = {
  name: sale.productItems[0].name,
  price: `${(sale.amount / 100).toFixed(2)} ${sale.currency}`,
  amount: String(sale.amount),
  currency: sale.currency.toLowerCase(),
};

const escaped = (text: string): string =>
  text.replace(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`);

const show = (response: ServerResponse, code: number, shown: Record<string, string>): void => {
  const nonce = randomBytes(12).toString('base64');
  const all: Record<string, string> = { ...ORDERED, library, key, nonce, ...shown };
  response.writeHead(code, {
    'content-type': 'text/html; charset=utf-8',
    'cache-control': 'no-store',
    'referrer-policy': 'same-origin',
    'x-content-type-options': 'nosniff',
    'content-security-policy': POLICY.replace('{nonce}', `'nonce-${nonce}'`),
  });
  response.end(page.replace(/{{(\w+)}}/g, (_, name) => escaped(all[name] ?? '')));
};

const receive = async (request: IncomingMessage): Promise<number> => {
  const body = await bodyOf(request, 1_000_000);
  if (!isSigned(request, body)) return 401;
  sendGoods(JSON.parse(String(body)));
  return 204;
};

/** Gives where the form leads, or shows what became of it. */
const submit = async (request: IncomingMessage, response: ServerResponse, order: string) => {
  // Only our own page may pay: another site's form has another origin.
  if (request.headers.origin !== shop) return response.writeHead(403).end();
  const form = new URLSearchParams(String(await bodyOf(request, 1_000)));
  const next = await pay(order, form, request.socket.remoteAddress ?? '');
  if (next.status === undefined) return response.writeHead(303, { location: next.back }).end();
  return show(response, 200, { order, ...(await lastOf(order)), status: next.status });
};

const serve = async (
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
  order: string | null,
): Promise<unknown> => {
  const end = (code: number, headers = {}, body = '') =>
    response.writeHead(code, headers).end(body);
  if (path === '/style.css') return end(200, { 'content-type': 'text/css' }, style);
  if (path === '/hook' && request.method === 'POST') return end(await receive(request));
  if (path !== '/') return end(404);
  if (order === null) {
    const name = `order-${randomBytes(6).toString('base64url')}`;
    orders.set(name, {});
    return end(303, { location: `/?order=${name}` });
  }
  const known = orders.get(order);
  if (known === undefined) return end(404);
  if (request.method === 'POST') return submit(request, response, order);
  const last = await lastOf(order);
  // A shopper who has closed the bank's page finds the way back to it.
  const { bankUrl = '' } = known;
  const status = last.status === 'PENDING' && bankUrl !== '' ? 'AT_BANK' : last.status;
  return show(response, 200, { order, ...last, status, bankUrl });
};

createServer(async (request, response) => {
  const [path = '', query] = (request.url ?? '').split('?');
  const order = new URLSearchParams(query).get('order');
  try {
    await serve(request, response, path, order);
  } catch (error) {
    console.error(error);
    if (response.headersSent || response.destroyed) response.destroy();
    else show(response, 502, { order: order ?? '', status: 'UNKNOWN' });
  }
}).listen(Number(PORT), '127.0.0.1');

try {
  await call('?limit=1');
  console.log(`the checkout is at ${shop}`);
} catch (error) {
  console.error(
    `PAYMENTS_TOKEN: ${(error as Error).message}; next: PAYMENTS_TOKEN=$(npx payments token)`,
  );
  process.exit(1);
}
