/**
 * Whether the log of a stopped data folder is the one that was sealed last, by the key that the settings
 * name or that lies in the folder. A verb shows what it reads all the same, and then ends with 3.
 */
import { existsSync } from 'node:fs';
import { LogMisfit } from '../projector/errors.ts';
import { lastKeyOf, rejectUnsealed, sealsOf } from '../projector/seals/check.ts';
import { headFileOf, isNextKey, readHeadFile, readSealingKey } from '../projector/seals/key.ts';
import { UnreadableStream } from '../shared/event-store/errors.ts';
import { logIdOf } from '../shared/event-store/log-id.ts';
import type { EventStore } from '../shared/event-store/port.ts';
import { publicKeyOf } from '../shared/event-store/seals.ts';
import { keyPlaceOf } from './sealing-key.ts';

/** The key that is trusted, and why the log does not fit its seals; both undefined where none is known. */
type SealedHead = { publicKey?: string; misfit?: string };

/** Checks the last seal and the kept heads, which is one look-up each. Throws StoreUnavailable. */
export const checkSealedHead = async (folder: string, store: EventStore): Promise<SealedHead> => {
  const { keyFile } = keyPlaceOf(folder);
  const found: SealedHead = {};
  if (!existsSync(keyFile)) return found;
  try {
    const own = publicKeyOf(await readSealingKey(keyFile));
    found.publicKey = own;
    const seals = await sealsOf(store);
    const last = lastKeyOf(seals);
    // Of a rotation that was broken off, the next start would finish the rest.
    const publicKey = last !== undefined && isNextKey(keyFile, last) ? last : own;
    found.publicKey = publicKey;
    const kept = readHeadFile(keyFile);
    const log = await logIdOf(store);
    await rejectUnsealed({ store, seals, log, publicKey, kept, headFile: headFileOf(keyFile) });
  } catch (error) {
    if (error instanceof LogMisfit) return { ...found, misfit: error.message };
    // The verb itself names the seal that cannot be read.
    if (!(error instanceof UnreadableStream)) throw error;
  }
  return found;
};
