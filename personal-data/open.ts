import type { Config } from '../shared/runtime/config.ts';
import type { MasterSecrets } from './master-key.ts';
import { createPool } from './pool.ts';
import type { KeyStore, StoredKeys } from './port.ts';
import { sqliteKeys } from './sqlite/keys.ts';

/** Both in the data folder; a backup of it has neither. */
export const KEYS_FILE = 'keys.sqlite';
export const MASTER_KEY_FILE = 'personal.kek';

/** `message` is one line for the operator. */
export class MasterKeyRefused extends Error {
  override name = 'MasterKeyRefused';
}

type KeyStoreOptions = {
  config: Pick<Config, 'mongoUrl' | 'personalData'>;
  /** The path of a file in the data folder; not called where a server is set. */
  fileOf(name: string): string;
  /** The secret of the master key in the data folder, where the settings have none. */
  ownKek?: string | undefined;
  /** Makes keys ahead at once; a process that opens boxes alone needs none. */
  takes: boolean;
};

/** Keys are rewrapped from the first to the last: of a rotation that was broken off the last is unreadable. */
const requireMasterKey = async ({ ends }: StoredKeys): Promise<void> => {
  if (!(await ends()).includes('unreadable')) return;
  throw new MasterKeyRefused(
    `PERSONAL_DATA_KEK: keys of personal data are wrapped by another master key; put its secret back (in the data folder: ${MASTER_KEY_FILE}), or set it as PERSONAL_DATA_PREVIOUS_KEK`,
  );
};

/** Chooses the store of keys by the settings; a server may be out of reach. Throws MasterKeyRefused, SQLite's errors. */
export const openKeyStore = async (options: KeyStoreOptions): Promise<KeyStore> => {
  const { mongoUrl, personalData } = options.config;
  const { kek = options.ownKek, previousKek } = personalData;
  if (kek === undefined)
    throw new MasterKeyRefused(`PERSONAL_DATA_KEK: is not set, and there is no ${MASTER_KEY_FILE}`);
  const secrets: MasterSecrets = [kek, ...(previousKek === undefined ? [] : [previousKek])];
  const stored =
    mongoUrl === undefined
      ? await sqliteKeys({ file: options.fileOf(KEYS_FILE), secrets })
      : (await import('./mongodb.ts')).mongoKeys(mongoUrl, secrets);
  await requireMasterKey(stored).catch(async (error: unknown) => {
    if (mongoUrl !== undefined && !(error instanceof MasterKeyRefused)) return;
    await stored.close();
    throw error;
  });
  const { take, refill } = createPool(async (count) => {
    await requireMasterKey(stored);
    return stored.make(count);
  });
  if (options.takes) void refill();
  return { ...stored, take };
};
