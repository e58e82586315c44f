/** Checks the seals of a whole log on the way through it: each by itself, its place, and that none is missing. */
import type { SealEvent } from '../payment/seal-events.ts';
import { SEALS_STREAM } from '../payment/seal-events.ts';
import { decode } from './codec.ts';
import type { StoredForm } from './port.ts';
import {
  isSameHead,
  SEAL_SLACK_EVENTS,
  type SealedHead,
  type SealedLog,
  sealReason,
  unsealedEventsMax,
} from './seals.ts';

/** What a log's seals come to. `eventsAfter` is how many events follow the last one: no seal covers them. */
export type SealsFound = {
  seals: number;
  eventsAfter: number;
  /** The position up to which the last seal covers the log, and the id of its key. */
  position?: string;
  keyId?: string;
};

/** An event of a log, from its store or from an export. */
type Form = Omit<StoredForm, 'id' | 'hashBefore' | 'logHashBefore'>;

const sealIn = (form: Form): SealEvent['data'] | undefined => {
  if (form.stream !== SEALS_STREAM) return undefined;
  const recorded = decode(form);
  return 'event' in recorded && recorded.event.type === 'LogSealed'
    ? recorded.event.data
    : undefined;
};

/** What the seals are checked against. */
export type SealsAgainst = Pick<SealedLog, 'log' | 'publicKey'> & {
  /** The last sealed head as it was kept outside the log before the check began. */
  kept?: SealedHead | undefined;
};

const STRIPPED = 'its seal is not in the log: the seals, or the end of the log, were taken out';

/**
 * The check of one log, whose events come in their order, each already checked by the chain. Each seal
 * seals a place after the seal before it, at most SEAL_SLACK_EVENTS before itself: where a copy of an
 * earlier seal would do, a copy would hide that the later ones were taken out.
 */
export const sealsCheck = (against: SealsAgainst) => {
  /** The last events: their log hashes by position, and which events of the log they are. */
  const lastEvents = new Map<string, { logHash: string | undefined; nth: number }>();
  let read = 0;
  let seals = 0;
  let last: { seal: SealEvent['data']; nth: number; sealedNth: number } | undefined;
  let keptIsThere = against.kept === undefined;

  const eventsAfter = (): number => (last === undefined ? read : read - last.sealedNth - 1);

  const gapReason = (): string | undefined => {
    if (last === undefined || eventsAfter() <= unsealedEventsMax(last.seal)) return undefined;
    // seeded bug: seal-missing
    return `more than ${unsealedEventsMax(last.seal)} events follow the seal of position ${last.seal.position} without another: seals were taken out, or the service could make none`;
  };

  const reasonOf = (seal: SealEvent['data']): string | undefined => {
    const sealed = lastEvents.get(seal.position);
    // seeded bug: seal-verified
    const reason = sealReason(seal, { ...against, logHash: sealed?.logHash });
    if (reason !== undefined || sealed === undefined) return reason;
    // seeded bug: seal-place
    const isCopy = last !== undefined && sealed.nth < last.nth;
    if (isCopy) return 'it seals nothing after the seal before it';
    last = { seal, nth: read, sealedNth: sealed.nth };
    seals += 1;
    keptIsThere ||= against.kept !== undefined && isSameHead(seal, against.kept);
    return undefined;
  };

  return {
    found: (): SealsFound => ({
      seals,
      eventsAfter: eventsAfter(),
      ...(last && { position: last.seal.position, keyId: last.seal.keyId }),
    }),
    /** Why an event does not fit: a seal, or the first event too many without one. */
    reasonFor: (form: Form): string | undefined => {
      read += 1;
      const seal = sealIn(form);
      const reason = seal === undefined ? undefined : reasonOf(seal);
      lastEvents.set(form.position, { logHash: form.logHash, nth: read });
      const [oldest] = lastEvents.keys();
      if (lastEvents.size > SEAL_SLACK_EVENTS && oldest !== undefined) lastEvents.delete(oldest);
      return reason ?? gapReason();
    },
    /** The break at the end of the whole log where the kept head's seal did not come. */
    missing: () =>
      keptIsThere || against.kept === undefined
        ? undefined
        : {
            position: against.kept.position,
            stream: SEALS_STREAM,
            revision: 0,
            reason: STRIPPED,
          },
  };
};
