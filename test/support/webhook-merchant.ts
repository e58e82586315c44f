/** A merchant with an endpoint on loopback, its payments, and every message that there is of them. */
import payment from '../../examples/payment.json' with { type: 'json' };
import { HANGS_MS } from './time-bounds.ts';
import type { Received } from './webhook-receiver.ts';
import { verified } from './webhook-receiver.ts';

/** A deployment as this merchant sees it; `url` may change when it starts again elsewhere. */
export type Merchant = { url: string; token: string };

export type Endpoint = { id: string; secret: string; status: string };

/** Loopback, where the receivers of the tests are. */
export const ALLOW_LOOPBACK = { WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8' };

/** Sends a request; throws where the service is gone. */
export const request = async (
  { url, token }: Merchant,
  method: string,
  path: string,
  body?: object,
): Promise<{ status: number; text: string; json: Record<string, unknown> }> => {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: body === undefined ? null : JSON.stringify(body),
    signal: AbortSignal.timeout(HANGS_MS),
  });
  const text = await response.text();
  return { status: response.status, text, json: text === '' ? {} : JSON.parse(text) };
};

export const merchantOf = async (
  service: { url: string; token(merchant: string, scope: string): Promise<string> },
  name: string,
): Promise<Merchant> => ({
  url: service.url,
  token: await service.token(name, 'payments:read payments:write webhooks:write'),
});

/** The value that this share of the values, from 0 to 1, does not exceed. */
export const percentile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.ceil(values.length * share) - 1] ?? Number.NaN;

/** Registers an endpoint. Throws Error where that is rejected. */
export const register = async (merchant: Merchant, url: string): Promise<Endpoint> => {
  const { status, json, text } = await request(merchant, 'POST', '/api/v1/webhook-endpoints', {
    url,
  });
  if (status !== 201) throw new Error(`${status} ${text}`);
  return json as Endpoint;
};

/**
 * A sale of so much, and half of it given back: two messages. Gives the last response, undefined where one
 * was rejected. Throws where the service is gone.
 */
export const saleAndRefund = async (
  merchant: Merchant,
): Promise<{ paymentId: string; text: string } | undefined> => {
  const body = { ...payment, merchantReference: undefined, amount: 1000, captureNow: true };
  const made = await request(merchant, 'POST', '/api/v1/payments', body);
  const paymentId = String(made.json.paymentId);
  const path = `/api/v1/payments/${paymentId}/refund`;
  const { status, text } = await request(merchant, 'POST', path, { refundAmount: 500 });
  return status === 200 ? { paymentId, text } : undefined;
};

/** A message as the stream of `payments listen` gives it. */
export type Message = { id: string; body: string };

/** Every message of the merchant's log, in its order: the live stream up to where it has caught up. */
export const allMessages = async ({ url, token }: Merchant): Promise<Message[]> => {
  const leaving = new AbortController();
  const response = await fetch(`${url}/api/v1/webhook-events/stream?from=start`, {
    headers: { authorization: `Bearer ${token}` },
    signal: leaving.signal,
  });
  let text = '';
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    if (text.includes('event: caught-up')) break;
  }
  leaving.abort();
  const end = text.indexOf('event: caught-up');
  if (end === -1) throw new Error('the stream ended before it had caught up');
  return [...text.slice(0, end).matchAll(/^event: payment\.\S+\ndata: (.*)$/gm)].map(
    ([, body = '']) => ({
      id: JSON.parse(body).data.eventId,
      body,
    }),
  );
};

/** What was received, checked by the library, without repeats; in the order of first arrival. */
export const firstOfEach = (received: readonly Received[], secret: string): Message[] => {
  const first = new Map<string, string>();
  for (const one of received) {
    verified(secret, one);
    const { eventId } = one.json.data;
    if (eventId !== one.id) throw new Error(`webhook-id ${one.id} of event ${eventId}`);
    const before = first.get(one.id);
    if (before !== undefined && before !== one.body) throw new Error(`${one.id} has changed`);
    if (before === undefined) first.set(one.id, one.body);
  }
  return [...first].map(([id, body]) => ({ id, body }));
};

/** Messages by payment, each payment's in the order given. */
export const byPayment = (messages: readonly Message[]): Record<string, string[]> => {
  const payments: Record<string, string[]> = {};
  for (const { body } of messages) {
    const { paymentId } = JSON.parse(body).data.payment;
    payments[paymentId] = [...(payments[paymentId] ?? []), body];
  }
  return payments;
};
