import type { Config } from '../shared/runtime/config.ts';
import { masterKeysOf } from './master-key.ts';
import { createPool } from './pool.ts';
import type { KeyStore } from './port.ts';
import { sqliteKeys } from './sqlite/keys.ts';

/** Both in the data folder; a backup of it has neither. */
export const KEYS_FILE = 'keys.sqlite';
export const MASTER_KEY_FILE = 'personal.kek';
/** As LAST_BACKUP, of the keys alone. */
export const LAST_KEY_BACKUP = 'backup.keys';

/** `message` is one line for the operator. */
export class PersonalDataRefused extends Error {
  override name = 'PersonalDataRefused';
}

const OTHER_MASTER_KEY = `PERSONAL_DATA_KEK: keys of personal data are wrapped by another master key; put its secret back (in the data folder: ${MASTER_KEY_FILE}), or set it as PERSONAL_DATA_PREVIOUS_KEK`;

type KeyStoreOptions = {
  config: Pick<Config, 'mongoUrl' | 'personalData'>;
  /** The path of a file in the data folder; not called where a server is set. */
  fileOf(name: string): string;
  /** The secret of the master key in the data folder, where the settings have none. */
  ownKek?: string | undefined;
  /** Makes keys ahead at once; a process that opens boxes alone needs none. */
  takes: boolean;
};

/** Chooses the store of keys by the settings; a server may be out of reach. Throws PersonalDataRefused, SQLite's errors. */
export const openKeyStore = async (options: KeyStoreOptions): Promise<KeyStore> => {
  const { mongoUrl, personalData } = options.config;
  const { kek = options.ownKek, previousKek } = personalData;
  if (kek === undefined)
    throw new PersonalDataRefused(
      `PERSONAL_DATA_KEK: is not set, and there is no ${MASTER_KEY_FILE}`,
    );
  const masterKeys = masterKeysOf(kek, previousKek);
  const { make, ends, ...stored } =
    mongoUrl === undefined
      ? await sqliteKeys(
          { file: options.fileOf(KEYS_FILE), secrets: [kek, previousKek] },
          masterKeys,
        )
      : (await import('./mongodb.ts')).mongoKeys(mongoUrl, masterKeys);
  let checked = false;
  const requireMasterKey = async (): Promise<void> => {
    // A rotation goes from the first to the last: where it was broken off, the last has the earlier one.
    const isKnown = (kek: string): boolean => masterKeys.some(({ id }) => id === kek);
    checked ||= (await ends()).every(isKnown);
    if (!checked) throw new PersonalDataRefused(OTHER_MASTER_KEY);
  };
  await requireMasterKey().catch(async (error: unknown) => {
    if (mongoUrl !== undefined && !(error instanceof PersonalDataRefused)) return;
    await stored.close();
    throw error;
  });
  const { take, refill } = createPool((count) => requireMasterKey().then(() => make(count)));
  if (options.takes) void refill();
  return { ...stored, take };
};
