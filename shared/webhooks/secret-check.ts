/** Receivers take messages signed with another `WEBHOOK_SECRET` for forged: such a process sends none. */
import { StoreUnavailable } from '../event-store/errors.ts';
import type { EventStore } from '../event-store/port.ts';
import { checkValueOf } from './signer.ts';

/** The message is for the operator. */
export class WebhookSecretRefused extends Error {
  override name = 'WebhookSecretRefused';
}

/** Throws WebhookSecretRefused, and StoreUnavailable while the check value is not known. */
export type WebhookSecret = () => Promise<string>;

/** Checks at once where the store responds, else before the first use. Throws WebhookSecretRefused. */
export const openWebhookSecret = async (
  store: Pick<EventStore, 'claimMeta'>,
  secret: string,
): Promise<WebhookSecret> => {
  const own = checkValueOf(secret);
  let isChecked = false;
  const checked: WebhookSecret = async () => {
    if (isChecked) return secret;
    if ((await store.claimMeta('webhook-check', own)) !== own) {
      throw new WebhookSecretRefused(
        'WEBHOOK_SECRET: webhooks were signed with another secret, and receivers would take new messages for forged; put the old secret back',
      );
    }
    isChecked = true;
    return secret;
  };
  await checked().catch((error: unknown) => {
    if (!(error instanceof StoreUnavailable)) throw error;
  });
  return checked;
};
