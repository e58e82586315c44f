/**
 * Checks at the start, by the seals alone, that the log is the one that was sealed last: its last seal,
 * every change of the key up to the service's own, and the heads kept beside the key, which no log fits
 * that was written anew without its seals, cut, or changed after its last one.
 */
import type { EventStore } from '../../shared/event-store/port.ts';
import { LogMisfit } from '../../shared/subscription/errors.ts';
import {
  anotherKey,
  type HeadFile,
  isSameHead,
  isSignedHead,
  keysOf,
  sealEventReason,
} from './seals.ts';
import type { RecordedSeal } from './stored-seals.ts';

type SealCheck = {
  store: Pick<EventStore, 'hashAt' | 'stored'>;
  seals: readonly RecordedSeal[];
  log: string;
  publicKey: string;
  kept: HeadFile | undefined;
  headFile: string;
};

/** On a server the seal's own hash: an event that is gone must not stop every payment (ADR-0033). */
const logHashAt = async ({ store, seals }: SealCheck, position: string) => {
  if (store.stored.guarantee === 'log') return (await store.hashAt(position))?.logHash;
  return seals.find(({ event }) => event.data.position === position)?.event.data.logHash;
};

/** A later seal covers an earlier one. */
const misfitIn = async (check: SealCheck) => {
  const { seals, log, publicKey: own } = check;
  const last = seals.at(-1);
  let publicKey: string | undefined;
  for (const at of seals) {
    const { before, after } = keysOf(at.event);
    publicKey ??= before;
    if (at !== last && at.event.type === 'LogSealed') continue;
    const logHash = await logHashAt(check, at.event.data.position);
    const reason = sealEventReason(at.event, { log, publicKey, logHash });
    if (reason !== undefined) return { at, reason };
    publicKey = after;
  }
  if (last !== undefined && publicKey !== undefined && publicKey !== own)
    return { at: last, reason: anotherKey(publicKey, own) };
  return undefined;
};

const NAMES = {
  LogSealed: 'the last seal of the event log',
  SealingKeyRotated: 'the change of the key in the event log',
};

const rejectOtherThanKept = async (check: SealCheck, { sealed, last }: HeadFile): Promise<void> => {
  const { store, seals, log, publicKey, headFile } = check;
  const restored = `put the right log back, or, after a restore that was meant, remove ${headFile} and run payments verify --all and payments reconcile`;
  if (sealed !== undefined) {
    // The hash alone would fit where only the seals were taken out, and all after them was written anew.
    const isThere = seals.some(({ event }) => isSameHead(event.data, sealed));
    const logHash = await logHashAt(check, sealed.position);
    if (!isThere || sealed.log !== log || logHash !== sealed.logHash)
      throw new LogMisfit(
        `the event log is not the one that was sealed at position ${sealed.position}: it was changed, cut, or put back from an older copy; ${restored}`,
      );
  }
  if (last === undefined) return;
  // Beside a key that was changed elsewhere lies a head that an earlier one signed.
  const keys = new Set([publicKey, ...seals.map(({ event }) => keysOf(event).before)]);
  if (!isSignedHead(last, [...keys]))
    throw new LogMisfit(
      `${headFile} holds a head that the sealing key has not signed; put its last good copy back, or remove it after payments verify`,
    );
  // A verification finds what a server's log has there (ADR-0033).
  const isRead = store.stored.guarantee === 'log';
  const logHash = isRead ? (await store.hashAt(last.position))?.logHash : last.logHash;
  if (last.log === log && logHash === last.logHash) return;
  throw new LogMisfit(
    `the event log is not the one that was kept at position ${last.position}, after its last seal: it was changed, cut, or put back from an older copy; ${restored}`,
  );
};

/** Throws LogMisfit where a seal or a kept head does not fit the log, and what the store throws. */
export const rejectUnsealed = async (check: SealCheck): Promise<void> => {
  const misfit = await misfitIn(check);
  if (misfit !== undefined) {
    const { at, reason } = misfit;
    throw new LogMisfit(
      `${NAMES[at.event.type]}, at position ${at.position}, does not fit: ${reason}; put back the log and the key that were sealed together (docs/operations.md, "A damaged event log")`,
    );
  }
  if (check.kept !== undefined) await rejectOtherThanKept(check, check.kept);
};
