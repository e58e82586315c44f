/** Sends requests to Stripe, each once, with the key and the account of the payment's merchant. */
import { type NoResponse, openTransport, type RawResponse } from '../transport.ts';
import type { StripeRequest } from './requests.ts';

/** Whose money it is: a secret key, and the connected account that the key acts for. */
export type StripeAccount = {
  secretKey: string;
  account?: string | undefined;
  /** For the log; absent for the installation's. */
  name?: string;
};

/** One deadline over all requests of an operation. */
export type Deadline = { signal: AbortSignal; leftMs(): number };

export type StripeResponse = RawResponse | NoResponse;

export type StripeClient = {
  /** Never throws. */
  send(request: StripeRequest, account: StripeAccount, deadline: Deadline): Promise<StripeResponse>;
  close(): Promise<void>;
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

/** Opens the client; nothing is connected yet. Throws only when `url` is no address. */
export const stripeClient = (options: {
  url: string;
  version: string;
  connectTimeoutMs: number;
}): StripeClient => {
  const base = new URL(options.url);
  const prefix = base.pathname.replace(/\/+$/, '');
  const transport = openTransport(base.origin, options.connectTimeoutMs);
  return {
    send: (request, account, { signal }) => {
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

/** Starts a deadline; `end` frees its timer. */
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
