/**
 * Opens the sealer where the store keeps no chain over the log (EventStoreDB): the projector carries the
 * log hash, and whoever has the lease seals it (ADR-0033). The server may still be out of reach.
 */
import type { KeyObject } from 'node:crypto';
import { StoreUnavailable, UnreadableStream } from '../../shared/event-store/errors.ts';
import { logIdOf } from '../../shared/event-store/log-id.ts';
import { keyIdOf, publicKeyOf } from '../../shared/event-store/seals.ts';
import { LogMisfit } from '../errors.ts';
import { lastKeyOf, rejectUnsealed, sealsOf } from './check.ts';
import {
  headFileOf,
  isNextKey,
  type KeyPlace,
  keptHeads,
  readSealingKey,
  takeNextKey,
  writeHeadFile,
} from './key.ts';
import type { OpenedSealer, OpenSealer } from './opened-sealer.ts';
import { carryHash } from './running-hash.ts';
import { startSealer } from './sealer.ts';

/** The seals of the log, or none while the server is out of reach. */
const sealsNow = ({ store }: OpenSealer) =>
  sealsOf(store).catch((error: unknown) => {
    if (error instanceof StoreUnavailable) return undefined;
    if (!(error instanceof UnreadableStream)) throw error;
    throw new LogMisfit(
      `the seals of the event log are not whole (${error.message}); put them back, or keep what is left for payments verify --all`,
    );
  });

type Own = { place: KeyPlace; privateKey: KeyObject };

const startCarrying = (options: OpenSealer, { place, privateKey }: Own): OpenedSealer => {
  const { config, store, log } = options;
  const { keyFile } = place;
  const { eventsMax, everyMs } = config.seals;
  const publicKey = publicKeyOf(privateKey);
  const running = carryHash({
    store,
    publicKey,
    logId: () => logIdOf(store),
    seals: async () => {
      const seals = await sealsOf(store);
      // One of several services on one server, each with a key of its own: the first one seals.
      if (config.seals.keyFile === undefined && (lastKeyOf(seals) ?? publicKey) !== publicKey)
        return seals;
      const own = { seals, publicKey, kept: keptHeads(place), headFile: headFileOf(keyFile) };
      await rejectUnsealed({ ...own, store, log: await logIdOf(store) });
      return seals;
    },
  });
  const keep = (heads: Parameters<typeof writeHeadFile>[1]) => writeHeadFile(keyFile, heads);
  const own = { store, source: running, privateKey, promised: undefined, keep, logger: log };
  const sealer = startSealer({ ...own, eventsMax, everyMs });
  return { ...sealer, publicKey, keptHeads: () => keptHeads(place), running };
};

/** Throws LogMisfit where the key cannot be read, and what the file system throws. */
export const openCarried = async (options: OpenSealer, place: KeyPlace): Promise<OpenedSealer> => {
  const { config, log } = options;
  const { keyFile } = place;
  const seals = await sealsNow(options);
  const lastKey = lastKeyOf(seals ?? []);
  if (isNextKey(keyFile, lastKey)) await takeNextKey(keyFile);
  const privateKey = await readSealingKey(keyFile);
  const opened = startCarrying(options, { place, privateKey });
  if (config.seals.keyFile !== undefined) return opened;
  if (seals !== undefined && (lastKey ?? opened.publicKey) === opened.publicKey) return opened;
  if (lastKey !== undefined)
    log.warn(
      { keyId: keyIdOf(lastKey) },
      'the event log is sealed with the key of another service, and not by this one: set SEALING_KEY_FILE to the same key',
    );
  // What is trusted is known once the server has answered.
  return { ...opened, publicKey: undefined, keptHeads: () => undefined };
};
