/**
 * Changes the log's sealing key (ADR-0114): the next key is stored in its own file, then an event, signed by
 * both, names it, then it replaces the old one. After a break-off the next start or change finds the log's key.
 */
import { createPrivateKey } from 'node:crypto';
import { chmodSync, chownSync, statSync } from 'node:fs';
import type { EventStore } from '../../shared/event-store/port.ts';
import { replacePrivateFile } from '../../shared/runtime/private-files.ts';
import { LogMisfit } from '../../shared/subscription/errors.ts';
import {
  headFileOf,
  type KeyPlace,
  newSealingKey,
  nextFileOf,
  takeNextKey,
  writeHeadFile,
} from './key.ts';
import { openSealingKey } from './open.ts';
import { reach } from './running-hash.ts';
import { keyIdOf, makeRotation } from './seals.ts';
import { appendSeal, headToSeal, type RecordedSeal } from './stored-seals.ts';

export type Rotated = {
  keyId: string;
  /** Unless only a change that had been broken off was finished. */
  oldKeyId?: string;
};

const headNow = async (store: EventStore, log: string, seals: readonly RecordedSeal[]) => {
  if (store.stored.guarantee === 'log') return headToSeal(store, log);
  const position = await store.end();
  const reached = position === null ? undefined : await reach(store, seals, position);
  return reached && position !== null ? { log, position, logHash: reached.logHash } : undefined;
};

/**
 * Also finishes a change that was broken off. No service may run on a SQLite log; a projector on a server's log
 * seals no more until it has the new key. Throws LogMisfit where the log is empty or not sealed by the key.
 */
export const rotateSealingKey = async (store: EventStore, place: KeyPlace): Promise<Rotated> => {
  const { keyFile, keepsHead } = place;
  const { privateKey, publicKey, log, seals, finished } = await openSealingKey(store, place);
  if (finished) return { keyId: keyIdOf(publicKey) };
  const last = seals.at(-1);
  const head = await headNow(store, log, seals);
  if (head === undefined)
    throw new LogMisfit('the log is empty, so no seal needs the old key: remove its file instead');
  const { uid, gid, mode } = statSync(keyFile);
  // A service cannot read a file of root's.
  const keepUser = (file: string): void => {
    if (process.geteuid?.() === 0) chownSync(file, uid, gid);
    chmodSync(file, mode);
  };
  const pem = newSealingKey();
  const data = makeRotation(privateKey, createPrivateKey(pem), {
    ...head,
    eventsMax: last?.event.data.eventsMax,
  });
  await replacePrivateFile(nextFileOf(keyFile), pem);
  keepUser(nextFileOf(keyFile));
  await appendSeal(store, last, { type: 'SealingKeyRotated', data }, 'operator');
  await takeNextKey(keyFile);
  if (keepsHead) await writeHeadFile(place, { sealed: head });
  if (keepsHead) keepUser(headFileOf(place));
  return { keyId: data.newKeyId, oldKeyId: data.oldKeyId };
};
