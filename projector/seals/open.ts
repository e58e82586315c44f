/**
 * Opens the sealer. Where the store keeps a chain over the log, the last seal is checked first. On
 * EventStoreDB the projector carries the log hash, and the seals are checked once the server responds
 * (ADR-0033).
 */
import type { KeyObject } from 'node:crypto';
import { logIdOf } from '../../shared/event-store/chain.ts';
import { StoreUnavailable, UnreadableStream } from '../../shared/event-store/errors.ts';
import { type Manifest, signatureOf } from '../../shared/event-store/manifest.ts';
import type { EventStore } from '../../shared/event-store/port.ts';
import { type HeadFile, keyIdOf, publicKeyOf } from '../../shared/event-store/seals.ts';
import type { Config } from '../../shared/runtime/config.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import { readableByOthers } from '../../shared/runtime/settings/files.ts';
import { LogMisfit } from '../errors.ts';
import { rejectUnsealed } from './check.ts';
import {
  headFileOf,
  isNextKey,
  type KeyPlace,
  keptHeads,
  keyPlaceOf,
  readSealingKey,
  SEALING_KEY_NAME,
  takeNextKey,
  writeHeadFile,
} from './key.ts';
import { carryHash, type RunningHash } from './running-hash.ts';
import { type Sealer, startSealer } from './sealer.ts';
import {
  lastKeyOf,
  type RecordedSeal,
  type SealSource,
  sealsOf,
  storedHeads,
} from './stored-seals.ts';

type OpenSealer = {
  config: Pick<Config, 'seals'>;
  store: EventStore;
  fileOf?: ((name: string) => string) | undefined;
  log: Logger;
};

export type OpenedSealer = Sealer & {
  publicKey: string | undefined;
  keptHeads(): HeadFile | undefined;
  /** Undefined where this process has no key. */
  signManifest?(manifest: Manifest): NonNullable<Manifest['signature']>;
  running?: RunningHash;
};

type OwnKey = {
  privateKey: KeyObject;
  publicKey: string;
  finished: boolean;
};

const openKey = async (keyFile: string, lastKey: string | undefined): Promise<OwnKey> => {
  const finished = isNextKey(keyFile, lastKey);
  if (finished) await takeNextKey(keyFile);
  const privateKey = await readSealingKey(keyFile);
  return { privateKey, publicKey: publicKeyOf(privateKey), finished };
};

/** Throws LogMisfit where the log is not the one that the key has sealed. */
export const openSealingKey = async (
  store: EventStore,
  place: KeyPlace,
): Promise<OwnKey & { logId: string; seals: readonly RecordedSeal[] }> => {
  const { keyFile } = place;
  const logId = await logIdOf(store);
  const seals = await sealsOf(store);
  const own = await openKey(keyFile, lastKeyOf(seals));
  const { publicKey } = own;
  const [kept, headFile] = [keptHeads(place), headFileOf(place)];
  await rejectUnsealed({ store, seals, log: logId, publicKey, kept, headFile });
  return { ...own, logId, seals };
};

const noSealer: OpenedSealer = {
  last: () => undefined,
  publicKey: undefined,
  keptHeads: () => undefined,
  seal: async () => undefined,
  overdue: async () => ({ sealSeconds: 0, headSeconds: 0 }),
  stop: async () => undefined,
};

const startOver = (
  { config, store, log }: OpenSealer,
  place: KeyPlace,
  { privateKey, publicKey }: OwnKey,
  source: SealSource,
  promised: number | undefined,
): OpenedSealer => {
  const { eventsMax, everyMs } = config.seals;
  const keep = place.keepsHead ? (heads: HeadFile) => writeHeadFile(place, heads) : undefined;
  const own = { store, source, privateKey, promised, keep, logger: log };
  const sealer = startSealer({ ...own, eventsMax, everyMs });
  const signManifest = (manifest: Manifest) => signatureOf(privateKey, manifest);
  return { ...sealer, publicKey, keptHeads: () => keptHeads(place), signManifest };
};

const openStored = async (options: OpenSealer, place: KeyPlace): Promise<OpenedSealer> => {
  const { config, store, log } = options;
  if (config.seals.keyFile === undefined) {
    log.warn(
      { keyFile: place.keyFile },
      'the sealing key lies beside the log: a thief of the data folder can forge the seals; set SEALING_KEY_FILE to a file on another volume',
    );
  }
  const own = await openSealingKey(store, place);
  const source = storedHeads(store, own.logId, own.seals.at(-1));
  return startOver(options, place, own, source, config.seals.eventsMax);
};

const sealsNow = ({ store }: OpenSealer) =>
  sealsOf(store).catch((error: unknown) => {
    if (error instanceof StoreUnavailable) return undefined;
    if (!(error instanceof UnreadableStream)) throw error;
    throw new LogMisfit(
      `the seals of the event log are not whole (${error.message}); put them back, or keep what is left for payments verify --all`,
    );
  });

const openCarried = async (options: OpenSealer, place: KeyPlace): Promise<OpenedSealer> => {
  const { config, store, log } = options;
  const { keyFile } = place;
  const known = await sealsNow(options);
  const lastKey = lastKeyOf(known ?? []);
  const own = await openKey(keyFile, lastKey);
  const { publicKey } = own;
  const isShared = config.seals.keyFile !== undefined;
  const running = carryHash({
    store,
    publicKey,
    logId: () => logIdOf(store),
    seals: async () => {
      const seals = await sealsOf(store);
      // Of several services on one server, each with a key of its own, the first one seals.
      if (!isShared && (lastKeyOf(seals) ?? publicKey) !== publicKey) return seals;
      const kept = { kept: keptHeads(place), headFile: headFileOf(place) };
      await rejectUnsealed({ ...kept, seals, publicKey, store, log: await logIdOf(store) });
      return seals;
    },
  });
  const opened = { ...startOver(options, place, own, running, undefined), running };
  if (isShared || (known !== undefined && (lastKey ?? publicKey) === publicKey)) return opened;
  if (lastKey !== undefined)
    log.warn(
      { keyId: keyIdOf(lastKey) },
      'the event log is sealed with the key of another service, and not by this one: set SEALING_KEY_FILE to the same key',
    );
  // Which key is trusted is known once the server has responded.
  return { ...opened, publicKey: undefined, keptHeads: () => undefined };
};

/** Throws LogMisfit where the log is not the one that was sealed. */
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
    log.warn({ keyFile }, `SEALING_KEY_FILE ${problem}: a reader of it can forge the seals`);
  }
  const isServer = store.stored.guarantee !== 'log';
  const place = keyPlaceOf(config, isServer, keyFile);
  return isServer ? openCarried(options, place) : openStored(options, place);
};
