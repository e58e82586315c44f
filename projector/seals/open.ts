/** Opens the sealer as the settings say, after the last seal has been checked. */
import type { KeyObject } from 'node:crypto';
import { logIdOf } from '../../shared/event-store/log-id.ts';
import type { EventStore } from '../../shared/event-store/port.ts';
import { publicKeyOf, type SealedHead } from '../../shared/event-store/seals.ts';
import type { Config } from '../../shared/runtime/config.ts';
import type { Log } from '../subscription.ts';
import type { RecordedSeal } from './append.ts';
import { lastKeyOf, rejectUnsealed, sealsOf } from './check.ts';
import {
  headFileOf,
  isNextKey,
  keepSealedHead,
  readSealedHead,
  readSealingKey,
  SEALING_KEY_NAME,
  takeNextKey,
} from './key.ts';
import { type Sealer, startSealer } from './sealer.ts';

export type OpenSealer = {
  config: Pick<Config, 'seals'>;
  store: EventStore;
  /** The path of a file in the data folder. */
  fileOf(name: string): string;
  log: Log;
};

/** The sealer, the public key whose seals are trusted, and the sealed head that is kept beside the key. */
export type OpenedSealer = Sealer & {
  publicKey: string | undefined;
  sealedHead(): SealedHead | undefined;
};

/** Where the store keeps no chain over the log, there is no head to seal. */
const noSealer: OpenedSealer = {
  publicKey: undefined,
  sealedHead: () => undefined,
  seal: async () => undefined,
  stop: async () => undefined,
};

/**
 * Where the key is. A head is kept beside it where a setting names its file: beside the log the head would
 * prove nothing, and would make a copy that was put back look cut.
 */
export type KeyPlace = { keyFile: string; keepsHead: boolean };

const keptHead = ({ keyFile, keepsHead }: KeyPlace): SealedHead | undefined =>
  keepsHead ? readSealedHead(keyFile) : undefined;

/** The key of the service, and what it takes to go on after the last seal of the log. */
export type OpenedKey = {
  privateKey: KeyObject;
  publicKey: string;
  logId: string;
  last: RecordedSeal | undefined;
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
  const kept = keptHead(place);
  const headFile = headFileOf(keyFile);
  const last = await rejectUnsealed({ store, seals, log: logId, publicKey, kept, headFile });
  return { privateKey, publicKey, logId, last, finished };
};

/** Throws LogMisfit where the log is not the one that was sealed, and what store and files throw. */
export const openSealer = async ({
  config,
  store,
  fileOf,
  log,
}: OpenSealer): Promise<OpenedSealer> => {
  if (store.stored.guarantee !== 'log') return noSealer;
  const { keyFile = fileOf(SEALING_KEY_NAME), ...times } = config.seals;
  if (config.seals.keyFile === undefined) {
    log.warn(
      { keyFile },
      'the sealing key lies beside the log: whoever takes the data folder can forge the seals; set SEALING_KEY_FILE to a file on another volume',
    );
  }
  const place = { keyFile, keepsHead: config.seals.keyFile !== undefined };
  const { privateKey, publicKey, logId, last } = await openSealingKey(store, place);
  const keep = async (head: SealedHead): Promise<void> => {
    if (place.keepsHead) await keepSealedHead(keyFile, head);
  };
  const sealer = startSealer({ store, privateKey, log: logId, last, ...times, keep, logger: log });
  return { ...sealer, publicKey, sealedHead: () => keptHead(place) };
};
