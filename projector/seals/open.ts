/** Opens the sealer as the settings say, after the last seal has been checked. */
import type { KeyObject } from 'node:crypto';
import { logIdOf } from '../../shared/event-store/log-id.ts';
import type { EventStore } from '../../shared/event-store/port.ts';
import { type HeadFile, publicKeyOf } from '../../shared/event-store/seals.ts';
import { readableByOthers } from '../../shared/runtime/settings/files.ts';
import type { RecordedSeal } from './append.ts';
import { lastKeyOf, rejectUnsealed, sealsOf } from './check.ts';
import {
  headFileOf,
  isNextKey,
  type KeyPlace,
  keptHeads,
  readSealingKey,
  SEALING_KEY_NAME,
  takeNextKey,
  writeHeadFile,
} from './key.ts';
import { openCarried } from './open-carried.ts';
import type { OpenedSealer, OpenSealer } from './opened-sealer.ts';
import { startSealer } from './sealer.ts';
import { storedHeads } from './source.ts';

/** The key of the service, and what it takes to go on after the last seal of the log. */
export type OpenedKey = {
  privateKey: KeyObject;
  publicKey: string;
  logId: string;
  seals: readonly RecordedSeal[];
  /** A change of the key that had been broken off was finished. */
  finished: boolean;
};

/** Throws LogMisfit where the log is not the one that the key has sealed, and what store and files throw. */
export const openSealingKey = async (store: EventStore, place: KeyPlace): Promise<OpenedKey> => {
  const { keyFile } = place;
  const logId = await logIdOf(store);
  const seals = await sealsOf(store);
  const finished = isNextKey(keyFile, lastKeyOf(seals));
  if (finished) await takeNextKey(keyFile);
  const privateKey = await readSealingKey(keyFile);
  const publicKey = publicKeyOf(privateKey);
  const kept = keptHeads(place);
  const headFile = headFileOf(keyFile);
  await rejectUnsealed({ store, seals, log: logId, publicKey, kept, headFile });
  return { privateKey, publicKey, logId, seals, finished };
};

/** A process without a key seals nothing: another one does, or nobody. */
const noSealer: OpenedSealer = {
  last: () => undefined,
  publicKey: undefined,
  keptHeads: () => undefined,
  seal: async () => undefined,
  stop: async () => undefined,
};

const openStored = async (
  { config, store, log }: OpenSealer,
  place: KeyPlace,
): Promise<OpenedSealer> => {
  const { keyFile, keepsHead } = place;
  const { eventsMax, everyMs } = config.seals;
  if (config.seals.keyFile === undefined) {
    log.warn(
      { keyFile },
      'the sealing key lies beside the log: whoever takes the data folder can forge the seals; set SEALING_KEY_FILE to a file on another volume',
    );
  }
  const { privateKey, publicKey, logId, seals } = await openSealingKey(store, place);
  const keep = keepsHead ? (heads: HeadFile) => writeHeadFile(keyFile, heads) : undefined;
  const source = storedHeads(store, logId, seals.at(-1));
  const own = { store, source, privateKey, promised: eventsMax, keep, logger: log };
  const sealer = startSealer({ ...own, eventsMax, everyMs });
  return { ...sealer, publicKey, keptHeads: () => keptHeads(place) };
};

/** Throws LogMisfit where the log is not the one that was sealed, and what store and files throw. */
export const openSealer = async (options: OpenSealer): Promise<OpenedSealer> => {
  const { config, store, fileOf, log } = options;
  const { keyFile = fileOf?.(SEALING_KEY_NAME) } = config.seals;
  if (keyFile === undefined) {
    log.warn(
      {},
      'the event log is not sealed: what is written anew in the files of its server is found by no verification; set SEALING_KEY_FILE, to the same key for every projector',
    );
    return noSealer;
  }
  const problem = config.seals.keyFile && readableByOthers(keyFile);
  if (problem !== undefined) {
    log.warn({ keyFile }, `SEALING_KEY_FILE ${problem}: whoever can read it can forge the seals`);
  }
  const isServer = store.stored.guarantee !== 'log';
  const place = { keyFile, keepsHead: isServer || config.seals.keyFile !== undefined };
  return isServer ? openCarried(options, place) : openStored(options, place);
};
