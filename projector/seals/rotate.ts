/**
 * Changes the key that seals the log (ADR-0137). The next key is durable in a file of its own, then the
 * log says that it follows, signed by both, then it takes the place of the old one: whatever breaks this
 * off, the next start or the next change finds a key that the log ends with.
 */
import { createPrivateKey } from 'node:crypto';
import type { EventStore } from '../../shared/event-store/port.ts';
import { keyIdOf, makeRotation } from '../../shared/event-store/seals.ts';
import { replacePrivateFile } from '../../shared/runtime/private-files.ts';
import { LogMisfit } from '../errors.ts';
import { appendSeal, headToSeal } from './append.ts';
import { type KeyPlace, keepSealedHead, newSealingKey, nextFileOf, takeNextKey } from './key.ts';
import { openSealingKey } from './open.ts';

/** What a change of the key came to. */
export type Rotated = {
  keyId: string;
  /** The earlier key; left out where only a change that had been broken off was finished. */
  oldKeyId?: string;
};

/**
 * Makes a new key and lets it follow the old one, whose file it replaces. Of a change that was broken off
 * it only finishes what is left. No service may run on the log. Throws LogMisfit where the log is empty or
 * not the one that the key has sealed, and what store and files throw.
 */
export const rotateSealingKey = async (store: EventStore, place: KeyPlace): Promise<Rotated> => {
  const { keyFile, keepsHead } = place;
  const { privateKey, publicKey, logId, last, finished } = await openSealingKey(store, place);
  if (finished) return { keyId: keyIdOf(publicKey) };
  const head = await headToSeal(store, logId);
  if (head === undefined)
    throw new LogMisfit('the log is empty, so no seal needs the old key: remove its file instead');
  const pem = newSealingKey();
  const data = makeRotation(privateKey, createPrivateKey(pem), {
    ...head,
    eventsMax: last?.event.data.eventsMax,
  });
  // seeded bug: next-key-durable-first
  await replacePrivateFile(nextFileOf(keyFile), pem);
  await appendSeal(store, last, { type: 'SealingKeyRotated', data }, 'operator');
  await takeNextKey(keyFile);
  if (keepsHead) await keepSealedHead(keyFile, head);
  return { keyId: data.newKeyId, oldKeyId: data.oldKeyId };
};
