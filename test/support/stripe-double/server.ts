/**
 * A double of Stripe's API on loopback, with the faults that a test plans. books.ts keeps its books.
 *
 * | it keeps to Stripe's documentation | it is simpler than Stripe |
 * |---|---|
 * | states of a PaymentIntent, cancel as a fence | no wallets, transfers, fees |
 * | a saved card belongs to a customer; any other token pays once | customers are a name alone |
 * | Idempotency-Keys of an account: replay, 400, 409, what is kept (idempotency.ts) | keys live until `prune` |
 * | declines and 3-D Secure by test number and token (cards.ts) | any other number is approved |
 * | one refund never above what was captured | refunds succeed at once, but for one card |
 * | a capture, cancel, refund or dispute by other hands (books.dashboard) | no fees, no payouts |
 * | lists by `created`, newest first, in pages | search is never behind |
 * | objects of their size, a charge only where it is expanded | what the driver ignores is a filler |
 * | one writer of a PaymentIntent at a time, 429 `lock_timeout` for another | it waits for no lock |
 * | one account sees nothing of another; 429 above `limitRates` (rate-limits.ts) | no limit by itself |
 * | 401 without a secret key, 400 without a version whose objects these are | a key may do all that is here, but what `withhold` names |
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
import { createLimits, type Limits } from './rate-limits.ts';

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

const invalid = (status: number, code?: string): Reply =>
  errorReply(status, { type: 'invalid_request_error', ...(code && { code }), message: 'oops' });
const RATE_LIMITED = invalid(429, 'rate_limit');
const LOCKED = invalid(429, 'lock_timeout');
const STATUS_FAULTS: { readonly [Fault in StripeFaultName]?: Reply } = {
  '429 rate_limit': RATE_LIMITED,
  '429 lock_timeout': LOCKED,
  '409 in use': errorReply(409, { type: 'idempotency_error', code: 'idempotency_key_in_use' }),
  '401': invalid(401, 'api_key_expired'),
  '403': invalid(403, 'secret_key_required'),
};
const SERVER_ERROR = errorReply(500, { type: 'api_error', message: 'oops' });

type Route = { step: Step; id: string };
const routeOf = (method: string, path: string): Route | undefined => {
  const [, v1, kind, id = '', verb] = path.split('/');
  if (v1 !== 'v1') return undefined;
  if (kind === 'payment_methods') return { step: method === 'POST' ? 'method' : 'read', id };
  if (kind === 'test_helpers' && id === 'confirmation_tokens') return { step: 'method', id };
  if (kind === 'confirmation_tokens') return { step: 'read', id };
  if (kind === 'disputes' || kind === 'events') return { step: 'list', id };
  if (kind === 'refunds') return { step: method === 'POST' ? 'refund' : 'list', id };
  if (kind !== 'payment_intents') return undefined;
  if (method === 'GET') return { step: id === '' || id === 'search' ? 'list' : 'read', id };
  if (verb === 'confirm' || verb === 'capture' || verb === 'cancel') return { step: verb, id };
  return { step: id === '' ? 'open' : 'update', id };
};

const act = (books: Books, { step, id }: Route, path: string, params: Params): Reply => {
  switch (step) {
    case 'open':
    case 'refund':
      return books[step](params);
    case 'method':
      return id === 'confirmation_tokens' ? books.makeTestToken(params) : books.makeMethod(params);
    case 'read':
      return path.startsWith('/v1/payment_intents') ? books.read(id, params) : books.readMethod(id);
    case 'list':
      if (id === 'search') return books.search(params);
      return books.list(path.split('/')[2] as Listed, params);
    default:
      return books[step](id, params);
  }
};

/** What Stripe rejects before it executes it; `named` is the account and the path. */
type Refusal = { meets(route: Route, named: string): boolean; reply: Reply; isOnce: boolean };

/** The PaymentIntent that a request changes: Stripe has one writer of it at a time. */
const lockOf = ({ step, id }: Route, params: Params): string | undefined => {
  if (step === 'refund') return params.get('payment_intent');
  return step === 'update' || MOVES.includes(step) ? id : undefined;
};

/** Since then a capture of part makes no refund of the rest. */
const VERSION_FIRST = '2025-03-31';

const MOVES: readonly Step[] = ['confirm', 'capture', 'cancel', 'refund'];

const textOf = async (incoming: IncomingMessage): Promise<string> => {
  const parts: Buffer[] = [];
  for await (const part of incoming) parts.push(part as Buffer);
  return Buffer.concat(parts).toString();
};

let responses = 0;
const newRequestId = (): string => {
  responses += 1;
  return `req_double_${responses}`;
};

const write = (
  outgoing: ServerResponse,
  { status, body, replayed }: Reply & { replayed?: true },
  change: (text: string) => string = (text) => text,
): void => {
  outgoing
    .writeHead(status, {
      'content-type': 'application/json',
      'request-id': newRequestId(),
      ...(replayed && { 'idempotent-replayed': 'true' }),
    })
    .end(change(JSON.stringify(body, null, 2)));
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
  const locked = new Set<string>();
  const received: Received[] = [];
  const planned = new Map<Step, StripeFaultName[]>();
  const refusals = new Set<Refusal>();
  const late: (() => Promise<unknown>)[] = [];
  let slowMs = () => 0;
  let held: Promise<void> | undefined;
  const limits = new Map<string, ReturnType<typeof createLimits>>();

  /** Undefined for the one that every other key is of. */
  const accountOf = ({ authorization = '', ...headers }: IncomingMessage['headers']) =>
    [String(headers['stripe-account']), authorization.replace('Bearer ', '')].find((name) =>
      accounts.has(name),
    );

  const refuse = (meets: Refusal['meets'], reply: Reply, isOnce = false): void =>
    void refusals.add({ meets, reply, isOnce });

  type Call = {
    own: Books;
    route: Route;
    path: string;
    params: Params;
    form: string;
    key: string | undefined;
  };

  const actAlone = async ({ own, route, path, params }: Call): Promise<Reply> => {
    const lock = lockOf(route, params);
    if (lock === undefined) return act(own, route, path, params);
    if (locked.has(lock)) return LOCKED;
    locked.add(lock);
    const moves = MOVES.includes(route.step);
    const ms = moves ? slowMs() : 0;
    if (ms > 0) await new Promise<void>((resolve) => later(ms, resolve));
    if (moves) await held;
    locked.delete(lock);
    return act(own, route, path, params);
  };

  /** Executes a request under its key; `made` replaces the reply that is kept, not the effect. */
  const perform = async (
    call: Call,
    made?: Reply,
    acts = true,
  ): Promise<Reply & { replayed?: true }> => {
    const { path, form, key } = call;
    const keyed = key === undefined ? undefined : { key, endpoint: path, form };
    const early = keyed && keys.begin(keyed);
    if (early !== undefined) return early;
    const reply = acts ? await actAlone(call) : SERVER_ERROR;
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
          text.replaceAll(/"amount(_received)?": \d+/g, '"amount$1": 1'),
        );
    }
  };

  const serve = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const { method = '', url = '', headers } = incoming;
    outgoing.setHeader('date', new Date(nowMs()).toUTCString());
    const body = await textOf(incoming);
    const [path = '', query = ''] = url.split('?');
    const route = routeOf(method, path);
    const form = method === 'GET' ? query : body;
    const params = new Map(new URLSearchParams(form));
    received.push({ method, path, step: route?.step, params, headers });
    if (!/^Bearer (sk|rk)_(test|live)_/.test(headers.authorization ?? ''))
      return write(outgoing, invalid(401));
    if (route === undefined && headers.authorization?.startsWith('Bearer rk_'))
      return write(outgoing, invalid(403));
    if (route === undefined) return write(outgoing, invalid(404));
    if (String(headers['stripe-version'] ?? '') < VERSION_FIRST)
      return write(outgoing, invalid(400));
    const account = accountOf(headers) ?? '';
    if (limits.get(account)?.(method, path) === false) return write(outgoing, RATE_LIMITED);
    const own = accounts.get(account) ?? books;
    const given = headers['idempotency-key'];
    const key = given === undefined ? undefined : `${account} ${given}`;
    const call = { own, route, path, params, form, key };
    const refusal = [...refusals].find((one) => one.meets(route, `${account} ${path}`));
    if (refusal?.isOnce) refusals.delete(refusal);
    if (refusal !== undefined) return write(outgoing, refusal.reply);
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
    reject: (step: Step, code: string | undefined) =>
      refuse((route) => route.step === step, invalid(400, code), true),
    /** Forgets all Idempotency-Keys, as Stripe may after a day. */
    prune: keys.prune,
    /** The account is not enabled for raw card numbers: from now on they are a 400 without a code. */
    rejectRawCards: () => refuse(({ step }) => step === 'method', invalid(400)),
    /** From now on the keys of the account lack the permission for a path: 403. */
    withhold: (path: string, account = '') =>
      refuse((_route, named) => named === `${account} ${path}`, invalid(403)),
    /** Whatever was refused is taken again. */
    permitAll: () => refusals.clear(),
    /** The account has no search, as in India: from now on it is a 400. */
    endSearch: () => refuse(({ id }) => id === 'search', invalid(400)),
    /** From now on what is above these limits of an account, or of all that were not opened, is a 429. */
    limitRates: (perSecond: Limits, account = '') =>
      void limits.set(account, createLimits(perSecond)),
    /** Does now what `acts late` has held back. */
    actLate: async () => {
      for (const act of late.splice(0)) await act();
    },
    /** Every confirm, capture, cancel and refund takes so long before it acts, or as long as is said. */
    actsAfterMs: (ms: number | (() => number)) => {
      slowMs = typeof ms === 'number' ? () => ms : ms;
    },
    /** The same act only once what is returned was called. */
    hold: (): (() => void) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      held = promise;
      return resolve;
    },
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
};
