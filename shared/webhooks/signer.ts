/**
 * Signatures of Standard Webhooks 1.0, version `v1`: HMAC-SHA256 over id, time and body. No secret is
 * stored: each is derived from `WEBHOOK_SECRET`, by what it is for (ADR-0221).
 */
import { createHmac } from 'node:crypto';

/** A key of 32 bytes, as it signs. */
export type SigningKey = Buffer;

/** What a receiver is shown: the specification's prefix and the key in base64. */
export const secretTextOf = (key: SigningKey): string => `whsec_${key.toString('base64')}`;

const derived = (installationSecret: string, purpose: string): SigningKey =>
  createHmac('sha256', installationSecret).update(purpose).digest();

/** The key of an endpoint; `number` is 1 for its first one, and one more after each rotation. */
export const endpointKey = (
  installationSecret: string,
  endpointId: string,
  number: number,
): SigningKey => derived(installationSecret, `${endpointId}.${number}`);

/** The key of a merchant's `payments listen --forward-to`: always the same, of no endpoint. */
export const listenKey = (installationSecret: string, merchantId: string): SigningKey =>
  derived(installationSecret, `listen.${merchantId}`);

/** What proves at the store that the secret is the one that was used before; tells nothing about it. */
export const checkValueOf = (installationSecret: string): string =>
  derived(installationSecret, 'check').toString('hex');

/** The three headers of one attempt. The body is signed, and has to be sent, to the byte. */
export const signedHeaders = (
  keys: readonly SigningKey[],
  id: string,
  nowMs: number,
  body: string,
): Record<'webhook-id' | 'webhook-timestamp' | 'webhook-signature', string> => {
  const timestamp = String(Math.floor(nowMs / 1000));
  const signed = `${id}.${timestamp}.${body}`;
  const signatures = keys.map(
    (key) => `v1,${createHmac('sha256', key).update(signed).digest('base64')}`,
  );
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signatures.join(' '),
  };
};
