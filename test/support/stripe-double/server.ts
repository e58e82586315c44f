/**
 * A double of Stripe's API on loopback, with the faults that a test plans. books.ts keeps its books.
 *
 * | it keeps to Stripe's documentation | it is simpler than Stripe |
 * |---|---|
 * | states of a PaymentIntent, cancel as a fence | no wallets, transfers, fees |
 * | a saved card belongs to a customer | customers are a name alone |
 * | Idempotency-Keys: replay, 400, 409, what is kept (idempotency.ts) | keys live until `prune` |
 * | declines and 3-D Secure by test number and token (cards.ts) | any other number is approved |
 * | one refund never above what was captured | refunds succeed at once, but for one card |
 * | lists by `created`, newest first, in pages | search is never behind |
 * | one account sees nothing of another | Idempotency-Keys are of all accounts |
 * | 401 without a secret key | every secret key has every permission |
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  type Books,
  createBooks,
  errorReply,
  type Listed,
  type Params,
  type Reply,
} from './books.ts';
import { createKeys } from './idempotency.ts';

/** What the request is for, in the words of a plan. */
export const STEPS = [
  'open',
  'method',
  'confirm',
  'capture',
  'cancel',
  'update',
  'refund',
  'read',
  'list',
] as const;
export type Step = (typeof STEPS)[number];

/** What goes wrong with a request; "acting" is what Stripe would do with it. */
export const FAULTS = [
  'reset before acting',
  'reset after acting',
  'hangs before acting',
  'hangs after acting',
  'acts late',
  '500 before acting',
  '500 after acting',
  '429 rate_limit',
  '429 lock_timeout',
  '409 in use',
  '401',
  '403',
  'cut JSON',
  'HTML',
  'oversized',
  'another id',
  'another amount',
  'a redirect',
] as const;
export type StripeFaultName = (typeof FAULTS)[number];

export type Received = {
  method: string;
  path: string;
  step: Step | undefined;
  params: Params;
  headers: IncomingMessage['headers'];
};

export type StripeDouble = Awaited<ReturnType<typeof stripeDouble>>;

const STATUS_FAULTS: { readonly [Fault in StripeFaultName]?: Reply } = {
  '429 rate_limit': errorReply(429, { type: 'invalid_request_error', code: 'rate_limit' }),
  '429 lock_timeout': errorReply(429, { type: 'invalid_request_error', code: 'lock_timeout' }),
  '409 in use': errorReply(409, { type: 'idempotency_error', code: 'idempotency_key_in_use' }),
  '401': errorReply(401, { type: 'invalid_request_error', code: 'api_key_expired' }),
  '403': errorReply(403, { type: 'invalid_request_error', code: 'secret_key_required' }),
};
const SERVER_ERROR = errorReply(500, { type: 'api_error', message: 'oops' });

type Route = { step: Step; id: string };
const routeOf = (method: string, path: string): Route | undefined => {
  const [, v1, kind, id = '', verb] = path.split('/');
  if (v1 !== 'v1') return undefined;
  if (kind === 'payment_methods') return { step: method === 'POST' ? 'method' : 'read', id };
  if (kind === 'confirmation_tokens') return { step: 'read', id };
  if (kind === 'disputes') return { step: 'list', id };
  if (kind === 'refunds') return { step: method === 'POST' ? 'refund' : 'list', id };
  if (kind !== 'payment_intents') return undefined;
  if (method === 'GET') return { step: id === '' || id === 'search' ? 'list' : 'read', id };
  if (verb === 'confirm' || verb === 'capture' || verb === 'cancel') return { step: verb, id };
  return { step: id === '' ? 'open' : 'update', id };
};

const listOf = (path: string): Listed => {
  if (path.startsWith('/v1/disputes')) return 'disputes';
  return path.startsWith('/v1/refunds') ? 'refunds' : 'payment_intents';
};

const act = (books: Books, { step, id }: Route, path: string, params: Params): Reply => {
  switch (step) {
    case 'open':
      return books.open(params);
    case 'method':
      return books.makeMethod(params);
    case 'confirm':
      return books.confirm(id, params);
    case 'capture':
      return books.capture(id, params);
    case 'cancel':
      return books.cancel(id, params);
    case 'update':
      return books.update(id, params);
    case 'refund':
      return books.refund(params);
    case 'read':
      return path.startsWith('/v1/payment_intents') ? books.read(id) : books.readMethod(id);
    case 'list':
      if (id === 'search') return books.search(params);
      return books.list(listOf(path), params);
  }
};

const MOVES: readonly Step[] = ['confirm', 'capture', 'cancel', 'refund'];

const textOf = async (incoming: IncomingMessage): Promise<string> => {
  const parts: Buffer[] = [];
  for await (const part of incoming) parts.push(part as Buffer);
  return Buffer.concat(parts).toString();
};

const write = (
  outgoing: ServerResponse,
  { status, body, replayed }: Reply & { replayed?: true },
  change: (text: string) => string = (text) => text,
): void => {
  outgoing
    .writeHead(status, {
      'content-type': 'application/json',
      ...(replayed && { 'idempotent-replayed': 'true' }),
    })
    .end(change(JSON.stringify(body)));
};

const later = (ms: number, work: () => void): void => void setTimeout(work, ms).unref();

/**
 * Starts it with empty books on a free port of loopback, or on one that is given; `nowMs` is the wall
 * clock of Stripe.
 */
export const stripeDouble = async (nowMs: () => number = Date.now, port = 0) => {
  const books = createBooks(nowMs);
  const accounts = new Map<string, Books>();
  const keys = createKeys();
  const received: Received[] = [];
  const planned = new Map<Step, StripeFaultName[]>();
  const rejections = new Map<Step, string | undefined>();
  const late: (() => Promise<unknown>)[] = [];
  let slowMs = () => 0;
  let takesRawCards = true;
  let searches = true;

  const booksOf = ({ authorization = '', ...headers }: IncomingMessage['headers']): Books =>
    accounts.get(String(headers['stripe-account'])) ??
    accounts.get(authorization.replace('Bearer ', '')) ??
    books;

  type Call = {
    own: Books;
    route: Route;
    path: string;
    params: Params;
    form: string;
    key: string | undefined;
  };

  /** Executes a request under its key; `made` replaces the reply that is kept, not the effect. */
  const perform = async (
    { own, route, path, params, form, key }: Call,
    made?: Reply,
    acts = true,
  ): Promise<Reply & { replayed?: true }> => {
    const keyed = key === undefined ? undefined : { key, endpoint: path, form };
    const early = keyed && keys.begin(keyed);
    if (early !== undefined) return early;
    const ms = MOVES.includes(route.step) ? slowMs() : 0;
    if (ms > 0) await new Promise<void>((resolve) => later(ms, resolve));
    const reply = acts ? act(own, route, path, params) : SERVER_ERROR;
    if (keyed) keys.end(keyed, made ?? reply);
    return made ?? reply;
  };

  const goWrong = async (fault: StripeFaultName, call: Call, outgoing: ServerResponse) => {
    const rejected = STATUS_FAULTS[fault];
    if (rejected !== undefined) return write(outgoing, rejected);
    switch (fault) {
      case 'reset before acting':
        return outgoing.destroy();
      case 'hangs before acting':
        return;
      case 'acts late':
        return void late.push(() => perform(call));
      case '500 before acting':
        return write(outgoing, await perform(call, SERVER_ERROR, false));
      case '500 after acting':
        return write(outgoing, await perform(call, SERVER_ERROR));
      case 'a redirect':
        return outgoing.writeHead(307, { location: call.path }).end();
    }
    const reply = await perform(call);
    switch (fault) {
      case 'reset after acting':
        return outgoing.destroy();
      case 'hangs after acting':
        return;
      case 'cut JSON':
        return write(outgoing, reply, (text) => text.slice(0, -10));
      case 'HTML':
        return write(outgoing, reply, () => '<html>succeeded</html>');
      case 'oversized':
        return write(outgoing, reply, (text) => text + ' '.repeat(3 * 1024 * 1024));
      case 'another id':
        return write(outgoing, reply, (text) => text.replaceAll(/"(pi|re|pm)_/g, '"$1_x'));
      default:
        return write(outgoing, reply, (text) =>
          text.replaceAll(/"amount(_received)?":\d+/g, '"amount$1":1'),
        );
    }
  };

  const serve = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const { method = '', url = '', headers } = incoming;
    const body = await textOf(incoming);
    const [path = '', query = ''] = url.split('?');
    const route = routeOf(method, path);
    const form = method === 'GET' ? query : body;
    const params = new Map(new URLSearchParams(form));
    received.push({ method, path, step: route?.step, params, headers });
    if (!/^Bearer (sk|rk)_(test|live)_/.test(headers.authorization ?? ''))
      return write(outgoing, errorReply(401, { type: 'invalid_request_error' }));
    if (route === undefined) return write(outgoing, errorReply(404, { message: 'no such route' }));
    const key = headers['idempotency-key'];
    const own = booksOf(headers);
    const call = { own, route, path, params, form, key: Array.isArray(key) ? key[0] : key };
    if (route.step === 'method' && !takesRawCards)
      return write(outgoing, errorReply(400, { type: 'invalid_request_error', message: 'unsafe' }));
    if (route.id === 'search' && !searches)
      return write(outgoing, errorReply(400, { type: 'invalid_request_error', message: 'no' }));
    if (rejections.has(route.step)) {
      const code = rejections.get(route.step);
      rejections.delete(route.step);
      return write(
        outgoing,
        errorReply(400, { type: 'invalid_request_error', ...(code && { code }) }),
      );
    }
    const fault = planned.get(route.step)?.shift();
    if (fault !== undefined) return void (await goWrong(fault, call, outgoing));
    write(outgoing, await perform(call));
  };

  const server = createServer((incoming, outgoing) => {
    serve(incoming, outgoing).catch(() => outgoing.destroy());
  }).listen(port, '127.0.0.1');
  await once(server, 'listening');
  server.unref();

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    books,
    /** The books of one account: requests with its secret key, or as its `Stripe-Account`, see no other. */
    openAccount: (name: string, own: Books) => {
      accounts.set(name, own);
      return own;
    },
    /** Everything that was received, oldest first. */
    received,
    /** The next request of this step goes wrong. */
    plan: (step: Step, fault: StripeFaultName) =>
      void planned.set(step, [...(planned.get(step) ?? []), fault]),
    /** The next request of this step is rejected, a 400 with this code or without one. */
    reject: (step: Step, code: string | undefined) => void rejections.set(step, code),
    /** Forgets all Idempotency-Keys, as Stripe may after a day. */
    prune: keys.prune,
    /** The account is not enabled for raw card numbers: from now on they are a 400 without a code. */
    rejectRawCards: () => {
      takesRawCards = false;
    },
    /** The account has no search, as in India: from now on it is a 400. */
    endSearch: () => {
      searches = false;
    },
    /** Does now what `acts late` has held back. */
    actLate: async () => {
      for (const act of late.splice(0)) await act();
    },
    actsAfterMs: (ms: number | (() => number)) => {
      slowMs = typeof ms === 'number' ? () => ms : ms;
    },
    /** Every confirm, capture, cancel and refund takes so long before it acts, or as long as is said. */
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
};
