import { setTimeout as delay } from 'node:timers/promises';
import manifest from '../../package.json' with { type: 'json' };
import { createBoundedMap } from '../../shared/runtime/bounded-map.ts';
import { lostBy, openTransport, type Response } from '../transport.ts';
import type { StripeRequest } from './requests.ts';
import { type StripeError, stripeErrorBody } from './shapes.ts';

export type StripeAccount = {
  secretKey: string;
  account?: string | undefined;
  name?: string;
};

export type StripeResponse = Response & { error?: StripeError | undefined };

export type Send = (request: StripeRequest) => Promise<StripeResponse>;

/** One call of the port: its requests share an account and a deadline. */
export type StripeCall = {
  send: Send;
  leftMs(): number;
  /** When it began, how long it may take, and how far Stripe's clock, by which it lists, is ahead. */
  nowMs: number;
  timeoutMs: number;
  aheadMs: number;
};

/** A PaymentIntent is 3 to 6 kB; a list has up to 100 of them. */
const BYTES_MAX = 2 * 1024 * 1024;

const headersOf = (
  { idempotencyKey, method }: StripeRequest,
  { secretKey, account }: StripeAccount,
  version: string,
): Record<string, string> => ({
  accept: 'application/json',
  authorization: `Bearer ${secretKey}`,
  'stripe-version': version,
  'user-agent': `${manifest.name}/${manifest.version}`,
  ...(method === 'POST' && { 'content-type': 'application/x-www-form-urlencoded' }),
  ...(idempotencyKey && { 'idempotency-key': idempotencyKey }),
  ...(account && { 'stripe-account': account }),
});

/** Of the account, among accounts: holds its key. */
export const nameOf = ({ secretKey, account }: StripeAccount): string =>
  `${secretKey} ${account ?? ''}`;

export const stripeClient = (options: {
  url: string;
  version: string;
  connectTimeoutMs: number;
  perSecondMax?: number;
  nowMs?: (() => number) | undefined;
}) => {
  const { nowMs = Date.now } = options;
  const transport = openTransport(options.url, options.connectTimeoutMs, BYTES_MAX);
  const pace = createPace(options.perSecondMax ?? 0);
  let aheadMs: number | undefined;
  return {
    pace,
    /** How far Stripe's clock, by which it lists, is ahead of ours; undefined before its first response. */
    aheadMs: (): number | undefined => aheadMs,
    /** `turn` is `pace.read` for what can wait: what became of a payment, the ledger. An unknown outcome cannot. */
    send: async (
      request: StripeRequest,
      account: StripeAccount,
      signal: AbortSignal,
      turn: (account: string) => Promise<boolean> = pace.atOnce,
    ): Promise<StripeResponse> => {
      if (!(await turn(nameOf(account)))) return lostBy('paced', false);
      const { method, path, params } = request;
      const form = new URLSearchParams(params).toString();
      const isGet = method === 'GET';
      const response = await transport.send({
        method,
        path: `${path}${isGet && form !== '' ? `?${form}` : ''}`,
        headers: headersOf(request, account, options.version),
        body: isGet ? undefined : form,
        signal,
      });
      const date = Date.parse(String(response.headers.date));
      if (!Number.isNaN(date)) aheadMs = date - nowMs();
      return { ...response, error: stripeErrorBody.safeParse(response.body).data?.error };
    },
    close: transport.close,
  };
};
export type StripeClient = ReturnType<typeof stripeClient>;

/** What is left of `timeoutMs`. Only the wall clock goes on while the machine is suspended, and the fence with it. */
export const timeLeft = (timeoutMs: number, nowMs: () => number): (() => number) => {
  const until = performance.now() + timeoutMs;
  const untilTime = nowMs() + timeoutMs;
  return () => Math.max(0, Math.min(until - performance.now(), untilTime - nowMs()));
};

/** Longer, and it is not begun: its client would wait for nothing. */
const WAIT_MS_MAX = 2_000;
const NAMES_MAX = 100_000;
/** Of Stripe's limits, that of all endpoints is four times that of one. */
const ALL = 4;

/** Turns in each account, `perSecond` for an endpoint; 0: no limit. False: the turn is too far away. */
const createPace = (perSecond: number) => {
  const gapMs = perSecond === 0 ? 0 : 1_000 / perSecond;
  /** When the bucket of each name is full again: a second's worth may go at once. */
  const fullAt = createBoundedMap<number>(NAMES_MAX);

  const take = (name: string, ms: number, now: number): void => {
    const full = Math.max(fullAt.peek(name) ?? 0, now) + ms;
    fullAt.set(name, Math.min(full, now + 1_000 + WAIT_MS_MAX));
  };
  /** Once `name` has room, and `others` have. */
  const wait = async (name: string, ...others: string[]): Promise<boolean> => {
    const now = performance.now();
    const untilMs = Math.max(now, ...[name, ...others].map((one) => fullAt.peek(one) ?? 0));
    const waitMs = untilMs + gapMs - now - 1_000;
    if (waitMs > WAIT_MS_MAX) return false;
    take(name, gapMs, now);
    if (waitMs > 0) await delay(waitMs);
    return true;
  };

  /** A request goes now; reads wait for what all requests have left. */
  const atOnce = async (account: string): Promise<boolean> => {
    take(account, gapMs / ALL, performance.now());
    return true;
  };
  return {
    operation: (account: string, kind: string) => wait(`${account} ${kind}`),
    atOnce,
    /** All reads share the rate of one endpoint, so that the money's requests find theirs free. */
    read: async (account: string) =>
      (await wait(`${account} read`, account)) && (await atOnce(account)),
  };
};
