/**
 * The check value of the idempotency secret (gaps §8): it stands in the event store, and a
 * process with another secret appends nothing, for it would charge repeats again. The secret may be
 * changed where the one before it is named too (ADR-0105); each change is an event.
 */
import { RevisionConflict, StoreUnavailable } from '../shared/event-store/errors.ts';
import type { EventStore, RecordedEvent } from '../shared/event-store/port.ts';
import { auditStreamOf } from '../shared/payment/audit-events.ts';
import { newEventId } from '../shared/runtime/ids.ts';
import type { Identities } from './idempotency.ts';

/** The event store was written with another idempotency secret. The message is for the operator. */
export class SecretRefused extends Error {
  override name = 'SecretRefused';
}

const STREAM = auditStreamOf('idempotency-secret');

type SecretStore = Pick<EventStore, 'claimMeta' | 'readStream' | 'append'>;

/** The check value of the secret that the events were last written with, and where that stands. */
const currentOf = async (store: SecretStore, own: string) => {
  const first = await store.claimMeta('idempotency-check', own);
  const last = (await store.readStream(STREAM)).at(-1);
  const event = last?.event;
  const check = event?.type === 'IdempotencySecretChanged' ? event.data.check : first;
  return { check, last };
};

/** Throws RevisionConflict where another process changed it at the same moment. */
const recordChange = async (
  store: SecretStore,
  last: RecordedEvent | undefined,
  data: { check: string; previousCheck: string },
): Promise<void> => {
  const expected = last === undefined ? 'none' : { revision: last.revision, hash: last.hash };
  const id = newEventId();
  const context = { actor: 'service', requestId: id, correlationId: id, causationId: id };
  const now = new Date().toISOString();
  const time = last !== undefined && now < last.time ? last.time : now;
  const event = { type: 'IdempotencySecretChanged', data } as const;
  await store.append(STREAM, expected, [{ id, time, event, context }]);
};

/** How often a change that another process made at the same moment is looked at again. */
const LOOKS_MAX = 5;

const checkSecret = async (store: SecretStore, identities: Identities): Promise<void> => {
  const own = identities.checkValue();
  for (let looks = 0; looks < LOOKS_MAX; looks += 1) {
    const { check, last } = await currentOf(store, own);
    if (check === own) return;
    // seeded bug: previous-secret-matches
    if (check !== identities.previous?.checkValue()) break;
    try {
      return await recordChange(store, last, { check: own, previousCheck: check });
    } catch (error) {
      if (!(error instanceof RevisionConflict)) throw error;
    }
  }
  throw new SecretRefused(
    'IDEMPOTENCY_SECRET: the events were written with another secret; with this one repeated requests would be charged again. Put the old secret back, or name it in IDEMPOTENCY_SECRET_PREVIOUS',
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
