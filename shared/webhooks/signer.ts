/** Standard Webhooks 1.0, `v1`; each secret is derived from `WEBHOOK_SECRET` (ADR-0221). */
import { createHmac } from 'node:crypto';

/** 32 bytes. */
type SigningKey = Buffer;

/** The form that a receiver is shown: the specification's prefix and the key in base64. */
export const secretTextOf = (key: SigningKey): string => `whsec_${key.toString('base64')}`;

const derived = (installationSecret: string, purpose: string): SigningKey =>
  createHmac('sha256', installationSecret).update(purpose).digest();

/** `number` is 1 for the endpoint's first key, and one more after each rotation. */
export const endpointKey = (
  installationSecret: string,
  endpointId: string,
  number: number,
): SigningKey => derived(installationSecret, `${endpointId}.${number}`);

/** The key of a merchant's `payments listen --forward-to`: always the same, of no endpoint. */
export const listenKey = (installationSecret: string, merchantId: string): SigningKey =>
  derived(installationSecret, `listen.${merchantId}`);

/** Proves at the store that the secret is the one used before; tells nothing about it. */
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
