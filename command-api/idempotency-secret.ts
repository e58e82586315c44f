/**
 * The event store keeps a check value of the idempotency secret (gaps §8): a process with another
 * secret appends nothing, for it would charge repeats again. A secret is changed by naming the one
 * before it too (ADR-0105); each change is an event.
 */
import { timeAfter } from '../shared/event-store/codec.ts';
import {
  type ControlReads,
  type ControlStream,
  readControl,
} from '../shared/event-store/control-stream.ts';
import {
  RevisionConflict,
  StoreUnavailable,
  UnreadableStream,
} from '../shared/event-store/errors.ts';
import type { EventStore, RecordedEvent } from '../shared/event-store/port.ts';
import { SECRET_CHANGES_STREAM } from '../shared/payment/audit-events.ts';
import { newEventId } from '../shared/runtime/ids.ts';
import type { Identities } from './idempotency.ts';

export class SecretRefused extends Error {
  override name = 'SecretRefused';
}

type SecretStore = ControlReads & Pick<EventStore, 'claimMeta' | 'append'>;

const checkOf = ({ event }: RecordedEvent): string[] =>
  event.type === 'IdempotencySecretChanged' ? [event.data.check] : [];

const knownTo = async (store: SecretStore, own: string) => {
  try {
    const first = await store.claimMeta('idempotency-check', own);
    const changes = await readControl(store, SECRET_CHANGES_STREAM);
    const older = [first, ...changes.events.flatMap(checkOf)];
    return { check: older.pop(), older, changes };
  } catch (error) {
    if (!(error instanceof UnreadableStream)) throw error;
    throw new SecretRefused(
      `IDEMPOTENCY_SECRET: it is not known whether the events were written with this secret, and with another one repeated requests would be charged again: ${error.message}`,
    );
  }
};

/** Another text in the older one's place would charge repeats again. */
const refuseForeign = (own: string, older: readonly string[], previous?: string): void => {
  if (previous === undefined || older.length === 0) return;
  if (previous !== own && older.includes(previous)) return;
  throw new SecretRefused(
    'IDEMPOTENCY_SECRET_PREVIOUS: no events were written with this secret before the current one; with it repeated requests from before the rotation would be charged again. Name the secret before the current one',
  );
};

const recordChange = async (
  store: SecretStore,
  { events, end }: ControlStream,
  data: { check: string; previousCheck: string },
): Promise<void> => {
  const id = newEventId();
  const context = { actor: 'service', requestId: id, correlationId: id, causationId: id };
  const event = { type: 'IdempotencySecretChanged', data } as const;
  const next = { id, time: timeAfter(events.at(-1)), event, context };
  await store.append(SECRET_CHANGES_STREAM, end, [next]);
};

const LOOKS_MAX = 5;

const checkSecret = async (store: SecretStore, identities: Identities): Promise<void> => {
  const own = identities.checkValue();
  const previous = identities.previous?.checkValue();
  for (let looks = 0; looks < LOOKS_MAX; looks += 1) {
    const { check, older, changes } = await knownTo(store, own);
    if (check === own) return refuseForeign(own, older, previous);
    if (check === undefined || check !== previous) break;
    try {
      return await recordChange(store, changes, { check: own, previousCheck: check });
    } catch (error) {
      if (!(error instanceof RevisionConflict)) throw error;
    }
  }
  throw new SecretRefused(
    'IDEMPOTENCY_SECRET: the events were written with another secret; with this one repeated requests would be charged again. Put the old secret back, or name it in IDEMPOTENCY_SECRET_PREVIOUS',
  );
};

/** Checks the secret now or before the first append. Throws SecretRefused, or calls `onRefused`. */
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
