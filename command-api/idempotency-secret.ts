/**
 * The check value of the idempotency secret (gaps §8): it stands in the event store, and a
 * process with another secret appends nothing, for it would charge repeats again.
 */
import { StoreUnavailable } from '../shared/event-store/errors.ts';
import type { EventStore } from '../shared/event-store/port.ts';
import type { Identities } from './idempotency.ts';

/** The event store was written with another idempotency secret. The message is for the operator. */
export class SecretRefused extends Error {
  override name = 'SecretRefused';
}

const checkSecret = async (
  store: Pick<EventStore, 'claimMeta'>,
  identities: Identities,
): Promise<void> => {
  const own = identities.checkValue();
  if ((await store.claimMeta('idempotency-check', own)) === own) return;
  throw new SecretRefused(
    'IDEMPOTENCY_SECRET: the events were written with another secret; with this one repeated requests would be charged again. Put the old secret back',
  );
};

/**
 * The store, appended to only once the secret has been checked. Throws SecretRefused at once where
 * the store answers; where it is out of reach, the check is made before the first append, and
 * `onRefused` is called when it fails.
 */
export const withCheckedSecret = async (
  store: EventStore,
  identities: Identities,
  onRefused: (error: Error) => void,
): Promise<EventStore> => {
  let checked = false;
  const check = async (): Promise<void> => {
    await checkSecret(store, identities);
    checked = true;
  };
  try {
    await check();
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error;
  }
  if (checked) return store;
  return {
    ...store,
    append: async (stream, expected, events) => {
      if (!checked) {
        await check().catch((error: Error) => {
          if (error instanceof SecretRefused) onRefused(error);
          throw error;
        });
      }
      return store.append(stream, expected, events);
    },
  };
};
