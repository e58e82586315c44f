/**
 * Checks, before the service starts, that the log is the one that was sealed last: by its last seal,
 * and by the sealed head that is kept beside the key, which a log that was written anew without its
 * seals, or cut behind one, does not fit. It walks over no event but the seals.
 */
import type { EventStore, RecordedEvent } from '../../shared/event-store/port.ts';
import { isSameHead, type SealedHead, sealReason } from '../../shared/event-store/seals.ts';
import { SEALS_STREAM, type SealEvent } from '../../shared/payment/seal-events.ts';
import { LogMisfit } from '../errors.ts';

/** A stored seal. */
export type RecordedSeal = RecordedEvent<SealEvent>;

const isSeal = (recorded: RecordedEvent): recorded is RecordedSeal =>
  recorded.event.type === 'LogSealed';

/** The seals of a log, in their order. Throws StoreUnavailable and UnreadableStream. */
const sealsOf = async ({ store }: SealCheck): Promise<RecordedSeal[]> =>
  (await store.readStream(SEALS_STREAM)).filter(isSeal);

export type SealCheck = {
  store: Pick<EventStore, 'readStream' | 'hashAt'>;
  /** The id of the log. */
  log: string;
  /** The public key that is trusted. */
  publicKey: string;
  /** The sealed head that is kept beside the key, and the file that holds it. */
  kept: SealedHead | undefined;
  headFile: string;
};

const logHashAt = async ({ store }: SealCheck, position: string): Promise<string | undefined> =>
  (await store.hashAt(position))?.logHash;

/** Why the last seal does not fit the log; undefined where it does, or where there is none. */
const lastSealReason = async (check: SealCheck, last: RecordedSeal | undefined) => {
  if (last === undefined) return undefined;
  const { data } = last.event;
  const logHash = await logHashAt(check, data.position);
  return sealReason(data, { log: check.log, publicKey: check.publicKey, logHash });
};

/** Throws LogMisfit where the last seal or the kept head does not fit the log, and what the store throws. */
export const rejectUnsealed = async (check: SealCheck): Promise<RecordedSeal | undefined> => {
  const { kept, headFile, log } = check;
  const seals = await sealsOf(check);
  const last = seals.at(-1);
  const reason = await lastSealReason(check, last);
  // seeded bug: seal-at-start
  if (reason !== undefined) {
    throw new LogMisfit(
      `the last seal of the event log, at position ${last?.position}, does not fit: ${reason}; put back the log and the key that were sealed together (docs/operations.md, "A damaged event log")`,
    );
  }
  if (kept === undefined) return last;
  // The hash alone would fit where only the seals were taken out, with everything after them written anew.
  // seeded bug: kept-head-has-seal
  const isThere = seals.some(({ event }) => isSameHead(event.data, kept));
  const logHash = await logHashAt(check, kept.position);
  if (isThere && kept.log === log && logHash === kept.logHash) return last;
  throw new LogMisfit(
    `the event log is not the one that was sealed at position ${kept.position}: it was changed, cut, or put back from an older copy; put the right log back, or, after a restore that was meant, remove ${headFile} and run payments verify --all and payments reconcile`,
  );
};
