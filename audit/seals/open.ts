/**
 * Opens the sealer. Where the store keeps a chain over the log, the last seal is checked first. On EventStoreDB
 * the projector carries the log hash, and seals are checked once the server responds (ADR-0033).
 */
import { logIdOf } from '../../shared/event-store/chain.ts';
import { StoreUnavailable, UnreadableStream } from '../../shared/event-store/errors.ts';
import type { EventStore } from '../../shared/event-store/port.ts';
import type { Config } from '../../shared/runtime/config.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import { readableByOthers } from '../../shared/runtime/settings/files.ts';
import { LogMisfit } from '../../shared/subscription/errors.ts';
import { type Manifest, signatureOf } from '../manifest.ts';
import {
  headFileOf,
  isNextKey,
  type KeyPlace,
  keyPlaceOf,
  readHeadFile,
  readSealingKey,
  SEALING_KEY_NAME,
  takeNextKey,
  writeHeadFile,
} from './key.ts';
import { carryHash, type RunningHash } from './running-hash.ts';
import { type Sealer, startSealer } from './sealer.ts';
import {
  anotherKey,
  type HeadFile,
  isSameHead,
  isSignedHead,
  keyIdOf,
  keysOf,
  publicKeyOf,
  sealEventReason,
} from './seals.ts';
import { lastKeyOf, type RecordedSeal, sealsOf, storedHeads } from './stored-seals.ts';

type OpenSealer = {
  config: Pick<Config, 'seals'>;
  store: EventStore;
  fileOf?: ((name: string) => string) | undefined;
  log: Logger;
};

export type OpenedSealer = Sealer & {
  publicKey: string | undefined;
  /** Left out where no head is kept, or no key is trusted. */
  keptHeads?: () => HeadFile | undefined;
  /** Undefined where this process has no key. */
  signManifest?: (manifest: Manifest) => NonNullable<Manifest['signature']>;
  running?: RunningHash;
};

const openKey = async (keyFile: string, lastKey: string | undefined) => {
  const finished = isNextKey(keyFile, lastKey);
  if (finished) await takeNextKey(keyFile);
  const privateKey = await readSealingKey(keyFile);
  return { privateKey, publicKey: publicKeyOf(privateKey), finished };
};

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
  // Next to a key that was changed elsewhere lies a head that an earlier one signed.
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

/** Throws LogMisfit for a log rewritten without seals, cut, or changed after the last one, or a store error. */
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

const checked = async (
  store: EventStore,
  place: KeyPlace,
  publicKey: string,
  seals: readonly RecordedSeal[],
) => {
  const log = await logIdOf(store);
  const kept = place.keepsHead ? readHeadFile(place) : undefined;
  const headFile = headFileOf(place);
  await rejectUnsealed({ store, seals, log, publicKey, kept, headFile });
  return { log, seals };
};

/** Throws LogMisfit where the log is not the one that the key has sealed. */
export const openSealingKey = async (store: EventStore, place: KeyPlace) => {
  const seals = await sealsOf(store);
  const own = await openKey(place.keyFile, lastKeyOf(seals));
  return { ...own, ...(await checked(store, place, own.publicKey, seals)) };
};

/** Over the hashes of a store that keeps a chain over the log. */
const openStored = async ({ config, store, log }: OpenSealer, place: KeyPlace) => {
  if (config.seals.keyFile === undefined)
    log.warn(
      { keyFile: place.keyFile },
      'the sealing key lies beside the log: a thief of the data folder can forge the seals; set SEALING_KEY_FILE to a file on another volume',
    );
  const own = await openSealingKey(store, place);
  const source = storedHeads(store, own.log, own.seals.at(-1));
  return { own, source, promised: config.seals.eventsMax, isTrusted: true };
};

const sealsNow = ({ store }: OpenSealer) =>
  sealsOf(store).catch((error: unknown) => {
    if (error instanceof StoreUnavailable) return undefined;
    if (!(error instanceof UnreadableStream)) throw error;
    throw new LogMisfit(
      `the seals of the event log are not whole (${error.message}); put them back, or keep what is left for payments verify --all`,
    );
  });

/** Over the hash that the projector carries, once the server responds. */
const openCarried = async (options: OpenSealer, place: KeyPlace) => {
  const { config, store, log } = options;
  const known = await sealsNow(options);
  const lastKey = lastKeyOf(known ?? []);
  const own = await openKey(place.keyFile, lastKey);
  const { publicKey } = own;
  const isShared = config.seals.keyFile !== undefined;
  /** Of several services on one server, each with a key of its own, the first one seals. */
  const isOwn = (last: string | undefined) => isShared || (last ?? publicKey) === publicKey;
  const running = carryHash({
    store,
    publicKey,
    logId: () => logIdOf(store),
    seals: async () => {
      const seals = await sealsOf(store);
      if (isOwn(lastKeyOf(seals))) await checked(store, place, publicKey, seals);
      return seals;
    },
  });
  if (lastKey !== undefined && !isOwn(lastKey))
    log.warn(
      { keyId: keyIdOf(lastKey) },
      'the event log is sealed with the key of another service, and not by this one: set SEALING_KEY_FILE to the same key',
    );
  // Which key of several is trusted is known once the server has responded.
  const isTrusted = isShared || (known !== undefined && isOwn(lastKey));
  return { own, source: running, promised: undefined, isTrusted, running };
};

const noSealer: OpenedSealer = {
  last: () => undefined,
  publicKey: undefined,
  seal: async () => undefined,
  overdue: async () => ({ sealSeconds: 0, headSeconds: 0 }),
  stop: async () => undefined,
};

export const openSealer = async (options: OpenSealer): Promise<OpenedSealer> => {
  const { config, store, fileOf, log } = options;
  const { keyFile = fileOf?.(SEALING_KEY_NAME), eventsMax, everyMs } = config.seals;
  if (keyFile === undefined) {
    log.warn(
      {},
      'the event log is not sealed: verification cannot detect rewritten server files; set SEALING_KEY_FILE, to the same key for every projector',
    );
    return noSealer;
  }
  const problem = config.seals.keyFile && readableByOthers(keyFile);
  if (problem !== undefined)
    log.warn({ keyFile }, `SEALING_KEY_FILE ${problem}: a reader of it can forge the seals`);
  const isServer = store.stored.guarantee !== 'log';
  const place = keyPlaceOf(config, isServer, keyFile);
  const opened = isServer ? await openCarried(options, place) : await openStored(options, place);
  const { own, source, promised, isTrusted } = opened;
  const { privateKey } = own;
  const keep = place.keepsHead ? (heads: HeadFile) => writeHeadFile(place, heads) : undefined;
  const sealing = { store, source, privateKey, promised, keep, logger: log };
  return {
    ...startSealer({ ...sealing, eventsMax, everyMs }),
    signManifest: (manifest) => signatureOf(privateKey, manifest),
    publicKey: isTrusted ? own.publicKey : undefined,
    ...(isTrusted && place.keepsHead && { keptHeads: () => readHeadFile(place) }),
    ...('running' in opened && { running: opened.running }),
  };
};
