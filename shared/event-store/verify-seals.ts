/** Checks the seals of a log while the whole log is verified (verify-log.ts). */
import type { SealEvent } from '../payment/seal-events.ts';
import { SEALS_STREAM } from '../payment/seal-events.ts';
import { decode } from './codec.ts';
import type { EventStore, StoredForm } from './port.ts';
import { type SealedLog, sealReason } from './seals.ts';
import { breakAt } from './verify-chain.ts';
import type { LogBreak } from './verify-log.ts';

/** What a log's seals come to. `eventsAfter` is how many events follow the last one: no seal covers them. */
export type SealsFound = {
  seals: number;
  eventsAfter: number;
  /** The position up to which the last seal covers the log, and the id of its key. */
  position?: string;
  keyId?: string;
};

const sealIn = (form: StoredForm): SealEvent['data'] | undefined => {
  if (form.stream !== SEALS_STREAM) return undefined;
  const recorded = decode(form);
  return 'event' in recorded && recorded.event.type === 'LogSealed'
    ? recorded.event.data
    : undefined;
};

/** Checks the forms of a whole log in their order; `check` throws what the store throws. */
export const sealsCheck = (
  store: Pick<EventStore, 'hashAt'>,
  against: Pick<SealedLog, 'log' | 'publicKey'>,
) => {
  const found: SealsFound = { seals: 0, eventsAfter: 0 };
  return {
    found: (): SealsFound => found,
    /** The break where a form is a seal that does not fit. */
    check: async (form: StoredForm): Promise<LogBreak | undefined> => {
      const seal = sealIn(form);
      if (seal === undefined) {
        found.eventsAfter += 1;
        return undefined;
      }
      const logHash = (await store.hashAt(seal.position))?.logHash;
      // seeded bug: seal-verified
      const reason = sealReason(seal, { ...against, logHash });
      if (reason !== undefined) return breakAt(form, reason);
      found.seals += 1;
      Object.assign(found, { position: seal.position, keyId: seal.keyId, eventsAfter: 0 });
      return undefined;
    },
  };
};
