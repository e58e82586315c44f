/**
 * The event store keeps a check value of the idempotency secret (gaps §8): a process with another
 * secret appends nothing, for it would charge repeats again. A secret is changed by naming the one
 * before it too (ADR-0105); each change is an event, and so is the end of a rotation: a change to itself.
 */
import {
  appendControl,
  type ControlReads,
  readControl,
} from '../shared/event-store/control-stream.ts';
import {
  RevisionConflict,
  StoreUnavailable,
  UnreadableStream,
} from '../shared/event-store/errors.ts';
import type { EventStore } from '../shared/event-store/port.ts';
import type { Identities } from '../shared/http/idempotency.ts';
import { SECRET_CHANGES_STREAM } from '../shared/payment/audit-events.ts';
import { onError } from '../shared/runtime/error-text.ts';
import { newEventId } from '../shared/runtime/ids.ts';

export class SecretRefused extends Error {
  override name = 'SecretRefused';
}

type SecretStore = ControlReads & Pick<EventStore, 'claimMeta' | 'append'>;

/** Check values of the current secret, of all before it, and of those that the last rotation still recognises. */
const knownTo = async (store: SecretStore, own: string) => {
  try {
    let check = await store.claimMeta('idempotency-check', own);
    let [older, recognised]: [string[], string[]] = [[], []];
    const changes = await readControl(store, SECRET_CHANGES_STREAM);
    for (const { event } of changes.events) {
      if (event.type !== 'IdempotencySecretChanged') continue;
      const before = check;
      check = event.data.check;
      const isLeft = (one: string): boolean => one !== check;
      older = [...older, before].filter(isLeft);
      recognised = before === check ? [] : [...recognised, before].filter(isLeft);
    }
    return { check, older, recognised, changes };
  } catch (error) {
    if (!(error instanceof UnreadableStream)) throw error;
    throw new SecretRefused(
      `IDEMPOTENCY_SECRET: it is not known whether the events were written with this secret, and with another one repeated requests would be charged again: ${error.message}`,
    );
  }
};

const OTHER_SECRET =
  'IDEMPOTENCY_SECRET: the events were written with another secret; with this one repeated requests would be charged again. Put the old secret back, or name it in IDEMPOTENCY_SECRET_PREVIOUS';
const OTHER_PREVIOUS =
  'IDEMPOTENCY_SECRET_PREVIOUS: it is not the secret before the current one; with it repeated requests from before the rotation would be charged again. Name the secret before the current one';
const STILL_ROTATING =
  'IDEMPOTENCY_SECRET: the rotation to the secret that IDEMPOTENCY_SECRET_PREVIOUS names has not ended; with a third one repeated requests from before it would be charged again. Put the two secrets of that rotation back, or exchange them to take it back. It ends with a start without IDEMPOTENCY_SECRET_PREVIOUS';

const LOOKS_MAX = 5;

const checkSecret = async (store: SecretStore, identities: Identities): Promise<void> => {
  const own = identities.checkValue();
  const previous = identities.previous?.checkValue();
  for (let looks = 0; looks < LOOKS_MAX; looks += 1) {
    const { check, older, recognised, changes } = await knownTo(store, own);
    const forgets = recognised.some((one) => one !== own && one !== previous);
    if (check === own) {
      const isEnd = previous === undefined && recognised.length > 0;
      // Before the first change nothing can be charged again.
      const isKnown = previous === undefined || older.length === 0 || older.includes(previous);
      if (!isKnown || (forgets && !isEnd)) throw new SecretRefused(OTHER_PREVIOUS);
      if (!isEnd) return;
    } else if (check !== previous) break;
    else if (forgets) throw new SecretRefused(STILL_ROTATING);
    try {
      const data = { check: own, previousCheck: check };
      const event = { type: 'IdempotencySecretChanged', data } as const;
      const id = newEventId();
      const context = { actor: 'service', requestId: id, correlationId: id, causationId: id };
      await appendControl(store, SECRET_CHANGES_STREAM, changes, [event], context);
      return;
    } catch (error) {
      if (!(error instanceof RevisionConflict)) throw error;
    }
  }
  throw new SecretRefused(OTHER_SECRET);
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
  await check().catch(onError(StoreUnavailable, () => undefined));
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
