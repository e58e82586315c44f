import { setTimeout as delay } from 'node:timers/promises';
import { type NoResponse, openTransport, type RawResponse } from '../transport.ts';
import type { StripeRequest } from './requests.ts';

export type StripeAccount = {
  secretKey: string;
  account?: string | undefined;
  name?: string;
};

type Deadline = { signal: AbortSignal; leftMs(): number };

export type StripeResponse = RawResponse | NoResponse;

/** One call of the port: its requests share an account and a deadline. */
export type StripeCall = {
  send(request: StripeRequest): Promise<StripeResponse>;
  leftMs(): number;
};

/** A PaymentIntent is 3 to 6 kB; a list has up to 100 of them. */
const BYTES_MAX = 64 * 1024;
const LIST_BYTES_MAX = 2 * 1024 * 1024;

const headersOf = (
  { idempotencyKey, method }: StripeRequest,
  { secretKey, account }: StripeAccount,
  version: string,
): Record<string, string> => ({
  accept: 'application/json',
  authorization: `Bearer ${secretKey}`,
  'stripe-version': version,
  ...(method === 'POST' ? { 'content-type': 'application/x-www-form-urlencoded' } : {}),
  ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
  ...(account === undefined ? {} : { 'stripe-account': account }),
});

export const stripeClient = (options: {
  url: string;
  version: string;
  connectTimeoutMs: number;
}) => {
  const base = new URL(options.url);
  const prefix = base.pathname.replace(/\/+$/, '');
  const transport = openTransport(base.origin, options.connectTimeoutMs);
  return {
    send: (
      request: StripeRequest,
      account: StripeAccount,
      { signal }: Deadline,
    ): Promise<StripeResponse> => {
      const { method, path, params } = request;
      const form = new URLSearchParams(params).toString();
      const isGet = method === 'GET';
      return transport.send({
        method,
        path: `${prefix}${path}${isGet && form !== '' ? `?${form}` : ''}`,
        headers: headersOf(request, account, options.version),
        body: isGet ? undefined : form,
        signal,
        bytesMax: isGet ? LIST_BYTES_MAX : BYTES_MAX,
      });
    },
    close: transport.close,
  };
};

export type StripeClient = ReturnType<typeof stripeClient>;

export const startDeadline = (timeoutMs: number): Deadline & { end(): void } => {
  const abort = new AbortController();
  const until = performance.now() + timeoutMs;
  const timer = setTimeout(() => abort.abort(), timeoutMs);
  return {
    signal: abort.signal,
    leftMs: () => Math.max(0, until - performance.now()),
    end: () => clearTimeout(timer),
  };
};

/** Longer, and the operation is not begun: its client would wait for nothing. */
const WAIT_MS_MAX = 2_000;
const NAMES_MAX = 1_000;

/** False where the turn of `name` is too far away; 0: no limit. */
export const createPace = (perSecond: number) => {
  const gapMs = perSecond === 0 ? 0 : 1_000 / perSecond;
  /** When the bucket of each name is full again: a second's worth may go at once. */
  const fullAt = new Map<string, number>();
  return async (name: string): Promise<boolean> => {
    const now = performance.now();
    const full = Math.max(fullAt.get(name) ?? 0, now);
    const waitMs = full + gapMs - now - 1_000;
    if (waitMs > WAIT_MS_MAX) return false;
    if (fullAt.size >= NAMES_MAX) {
      for (const [other, at] of fullAt) if (at < now) fullAt.delete(other);
    }
    fullAt.set(name, full + gapMs);
    if (waitMs > 0) await delay(waitMs);
    return true;
  };
};
