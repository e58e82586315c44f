import { breakAt } from '../../shared/event-store/chain.ts';
import { decode } from '../../shared/event-store/codec.ts';
import type { StoredForm } from '../../shared/event-store/port.ts';
import { isSealEvent } from '../../shared/payment/events.ts';
import { SEALS_STREAM, type SealEvent } from '../../shared/payment/seal-events.ts';
import { unsealedReason } from '../breaks.ts';
import {
  anotherKey,
  type HeadFile,
  isSameHead,
  keyIdOf,
  keysOf,
  SEAL_SLACK_EVENTS,
  type SealedHead,
  type SealedLog,
  sealEventReason,
  unsealedEventsMax,
} from './seals.ts';

export type SealsFound = {
  seals: number;
  eventsAfter: number;
  position?: string;
  keyId?: string;
  /** The seals were checked from this key, where one was known. */
  trustedKeyId?: string;
};

type Form = Omit<StoredForm, 'id' | 'logHashBefore'>;

const sealIn = (form: Form): SealEvent | undefined => {
  if (form.stream !== SEALS_STREAM) return undefined;
  const recorded = decode(form);
  return 'event' in recorded && isSealEvent(recorded.event) ? recorded.event : undefined;
};

export type SealsAgainst = Pick<SealedLog, 'log'> & {
  /** Trusted, of any time of the log. */
  publicKey?: string | undefined;
  /** The heads that were kept outside the log before the check began. */
  kept?: HeadFile | undefined;
};

const STRIPPED = 'its seal is not in the log: the seals, or the end of the log, were taken out';
const NOT_KEPT =
  'its log hash is not the one that was kept beside the sealing key: the log was changed after its last seal';
const CUT =
  'the log ends before the head that was kept beside the sealing key: its last events were taken out';
const breakOfSeals = ({ position }: SealedHead, reason: string) =>
  breakAt({ position, stream: SEALS_STREAM, revision: 0 }, reason);

/**
 * Takes every event in order. Each seal covers a place after the seal before it and at most
 * SEAL_SLACK_EVENTS back (ADR-0114): a copy would hide that later ones were taken out.
 */
export const sealsCheck = (against: SealsAgainst) => {
  const recent: { position: string; logHash: string | undefined; nth: number }[] = [];
  let read = 0;
  let seals = 0;
  let last: { seal: SealEvent['data']; key: string; nth: number; sealedNth: number } | undefined;
  /** The gap to the next seal counts from here, also from a misfit; undefined once named. */
  let gapFrom: number | undefined;
  const { publicKey: trusted } = against;
  const { sealed: kept, last: keptLast } = against.kept ?? {};
  const keys = new Set<string>();
  let first: { form: Form; key: string } | undefined;
  let keptIsThere = kept === undefined;
  let lastIsThere = keptLast === undefined;

  const eventsAfter = (): number => (last === undefined ? read : read - last.sealedNth - 1);

  const gapReason = (): string | undefined => {
    if (last === undefined || gapFrom === undefined) return undefined;
    if (read - gapFrom - 1 <= unsealedEventsMax(last.seal)) return undefined;
    gapFrom = undefined;
    return unsealedReason(unsealedEventsMax(last.seal), last.seal.position);
  };

  const reasonOf = (form: Form, event: SealEvent): string | undefined => {
    const { data: seal } = event;
    const { before, after } = keysOf(event);
    const sealed = recent.find(({ position }) => position === seal.position);
    gapFrom = read;
    keptIsThere ||= kept !== undefined && isSameHead(seal, kept);
    const fit = { log: against.log, publicKey: last?.key, logHash: sealed?.logHash };
    const reason = sealEventReason(event, fit);
    if (reason !== undefined || sealed === undefined) return reason;
    const isCopy = last !== undefined && sealed.nth < last.nth;
    if (isCopy) return 'it seals nothing after the seal before it';
    first ??= { form, key: before };
    keys.add(before).add(after);
    last = { seal, key: after, nth: read, sealedNth: sealed.nth };
    gapFrom = sealed.nth;
    seals += 1;
    return undefined;
  };

  const keptReason = ({ position, logHash }: Form): string | undefined => {
    if (position !== keptLast?.position) return undefined;
    lastIsThere = true;
    return logHash === keptLast.logHash ? undefined : NOT_KEPT;
  };

  const unknownKey = () => {
    if (first === undefined || trusted === undefined || keys.has(trusted)) return undefined;
    const reason = `${anotherKey(first.key, trusted)}, and no change of the key leads from the one to the other`;
    return breakAt(first.form, reason);
  };

  return {
    found: (): SealsFound => ({
      seals,
      eventsAfter: eventsAfter(),
      ...(last && { position: last.seal.position, keyId: keyIdOf(last.key) }),
      ...(trusted !== undefined && { trustedKeyId: keyIdOf(trusted) }),
    }),
    /** Of the seals, and the trusted one; undefined for none. */
    keys: (): string[] | undefined => {
      const known = trusted === undefined ? [...keys] : [trusted, ...keys];
      return known.length === 0 ? undefined : known;
    },
    reasonFor: (form: Form): string | undefined => {
      read += 1;
      const seal = sealIn(form);
      const reason = seal === undefined ? undefined : reasonOf(form, seal);
      const { position, logHash } = form;
      recent[(read - 1) % SEAL_SLACK_EVENTS] = { position, logHash, nth: read };
      // Always looked at: it notes that the kept head has come.
      const otherThanKept = keptReason(form);
      return reason ?? gapReason() ?? otherThanKept;
    },
    missing: () => {
      if (!keptIsThere && kept !== undefined) return breakOfSeals(kept, STRIPPED);
      if (!lastIsThere && keptLast !== undefined) return breakOfSeals(keptLast, CUT);
      return unknownKey();
    },
  };
};
