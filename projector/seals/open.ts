/** Opens the sealer as the settings say, after the last seal has been checked. */
import { logIdOf } from '../../shared/event-store/log-id.ts';
import type { EventStore } from '../../shared/event-store/port.ts';
import { publicKeyOf, type SealedHead } from '../../shared/event-store/seals.ts';
import type { Config } from '../../shared/runtime/config.ts';
import type { Log } from '../subscription.ts';
import { rejectUnsealed } from './check.ts';
import {
  headFileOf,
  keepSealedHead,
  readSealedHead,
  readSealingKey,
  SEALING_KEY_NAME,
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
  const privateKey = await readSealingKey(keyFile);
  const publicKey = publicKeyOf(privateKey);
  const logId = await logIdOf(store);
  // Beside the log the head would prove nothing, and would make a copy that was put back look cut.
  const keptHead = () => (config.seals.keyFile === undefined ? undefined : readSealedHead(keyFile));
  const last = await rejectUnsealed({
    store,
    log: logId,
    publicKey,
    kept: keptHead(),
    headFile: headFileOf(keyFile),
  });
  const keep = async (head: SealedHead): Promise<void> => {
    if (config.seals.keyFile !== undefined) await keepSealedHead(keyFile, head);
  };
  const sealer = startSealer({ store, privateKey, log: logId, last, ...times, keep, logger: log });
  return { ...sealer, publicKey, sealedHead: keptHead };
};
