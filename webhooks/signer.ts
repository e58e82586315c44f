/** Standard Webhooks 1.0, `v1`; each secret is derived from `WEBHOOK_SECRET` (ADR-0221). */
import { createHmac } from 'node:crypto';
import { ControlNotWhole, StoreUnavailable } from '../shared/event-store/errors.ts';
import type { EventStore } from '../shared/event-store/port.ts';
import { onError } from '../shared/runtime/error-text.ts';
import type { Endpoint } from './endpoints/endpoints.ts';

/** The form that a receiver is shown: the specification's prefix and the key in base64. */
export const secretTextOf = (key: Buffer): string => `whsec_${key.toString('base64')}`;

const derived = (installationSecret: string, purpose: string): Buffer =>
  createHmac('sha256', installationSecret).update(purpose).digest();

/** `number` is 1 for the endpoint's first key, and one more after each rotation. */
export const endpointKey = (
  installationSecret: string,
  endpointId: string,
  number: number,
): Buffer => derived(installationSecret, `${endpointId}.${number}`);

/** The secrets that sign now, the newest first. */
export const liveSecretNumbers = (
  { secretNumber, oldSecretExpiresAt }: Pick<Endpoint, 'secretNumber' | 'oldSecretExpiresAt'>,
  nowMs: number,
): number[] =>
  oldSecretExpiresAt !== undefined && Date.parse(oldSecretExpiresAt) > nowMs
    ? [secretNumber, secretNumber - 1]
    : [secretNumber];

/** The key of a merchant's `payments listen --forward-to`: always the same, of no endpoint. */
export const listenKey = (installationSecret: string, merchantId: string): Buffer =>
  derived(installationSecret, `listen.${merchantId}`);

/** The three headers of one attempt. The body is signed, and has to be sent, to the byte. */
export const signedHeaders = (
  keys: readonly Buffer[],
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

/** Receivers would take messages signed with another secret for forged. The message is for the operator. */
export class WebhookSecretRefused extends Error {
  override name = 'WebhookSecretRefused';
}

/** Throws WebhookSecretRefused, and StoreUnavailable while the check value is not known. */
export type WebhookSecret = () => Promise<string>;

/** Checks at once where the store responds, else before the first use. Throws WebhookSecretRefused. */
export const openWebhookSecret = async (store: Pick<EventStore, 'claimMeta'>, secret: string) => {
  // Tells nothing about the secret.
  const own = derived(secret, 'check').toString('hex');
  let isChecked = false;
  const checked: WebhookSecret = async () => {
    if (isChecked) return secret;
    const unknown = onError(ControlNotWhole, ({ message }): never => {
      throw new WebhookSecretRefused(
        `WEBHOOK_SECRET: it is not known whether webhooks were signed with this secret: ${message}`,
      );
    });
    const claimed = await store.claimMeta('webhook-check', own).catch(unknown);
    if (claimed !== own) {
      throw new WebhookSecretRefused(
        'WEBHOOK_SECRET: webhooks were signed with another secret, and receivers would take new messages for forged; put the old secret back',
      );
    }
    isChecked = true;
    return secret;
  };
  await checked().catch(onError(StoreUnavailable, () => undefined));
  return checked;
};
