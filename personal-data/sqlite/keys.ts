/** Keys in a SQLite file: a thread writes it, the calling thread reads it. Other processes may do both too. */
import { existsSync } from 'node:fs';
import { startThread } from '../../shared/runtime/jobs.ts';
import { ensurePrivateFile } from '../../shared/runtime/private-files.ts';
import { openKeysToRead } from '../../shared/runtime/sqlite.ts';
import { KEY_BYTES, personalKeyOf } from '../box.ts';
import { foundKeyOf, type KeyRow, type MasterKeys } from '../master-key.ts';
import type { StoredKeys } from '../port.ts';
import type { KeysFile, KeysWriter } from './worker.ts';

const MEMORY = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 8 };

/** `file`: its path, or its address where nothing may be changed. Throws SQLite's errors, as `read`. */
export const readKeys = (file: string, masterKeys: MasterKeys) => {
  const db = openKeysToRead(file);
  const row = db.prepare('SELECT id, kek, wrapped FROM personal_key WHERE id = ?');
  const read: StoredKeys['read'] = async (ids) =>
    new Map(ids.map((id) => [id, foundKeyOf(masterKeys, row.get(id) as KeyRow | undefined)]));
  return { db, read };
};

/** The file is made with mode 0600. Throws SQLite's errors, as each call. */
export const sqliteKeys = async (
  workerData: KeysFile,
  masterKeys: MasterKeys,
): Promise<StoredKeys> => {
  const { file } = workerData;
  // To open and close a file ends the locks that another connection of this process has on it.
  if (!existsSync(file)) ensurePrivateFile(file);
  const name = 'the thread of the keys of personal data';
  const module = new URL('./worker.ts', import.meta.url);
  const start = () => startThread<KeysWriter>(module, { name, workerData, memory: MEMORY });
  let thread = start();
  const call = <N extends keyof KeysWriter>(job: N, ...args: Parameters<KeysWriter[N]>) => {
    // A call to a thread that failed wrote all or nothing.
    if (thread.isGone()) thread = start();
    return thread.call(job, ...args);
  };

  // The thread answers once the file has its tables.
  await call('isOpen').catch(async (error: unknown) => {
    await thread.end();
    throw error;
  });
  const { db, read } = readKeys(file, masterKeys);
  const live = 'SELECT kek FROM personal_key WHERE wrapped IS NOT NULL ORDER BY id';
  const ends = [db.prepare(`${live} LIMIT 1`), db.prepare(`${live} DESC LIMIT 1`)];
  const checkpoint = db.prepare('SELECT text FROM checkpoint');

  return {
    // The bytes of all come in one piece: to pass a key object each costs more than to make it.
    make: async (count) => {
      const { ids, bytes } = await call('make', count);
      const bytesOf = (at: number) => bytes.subarray(at * KEY_BYTES, (at + 1) * KEY_BYTES);
      const made = ids.map((id, at) => personalKeyOf({ id, bytes: bytesOf(at) }));
      bytes.fill(0);
      return made;
    },
    read,
    erase: (ids) => call('erase', ids),
    rewrap: (after) => call('rewrap', after),
    ends: async () => ends.flatMap((end) => end.all()).map(({ kek }) => String(kek)),
    checkpoint: async () => checkpoint.get()?.text as string | undefined,
    saveCheckpoint: (text) => call('saveCheckpoint', text),
    close: async () => {
      db.close();
      await thread.call('close').catch(() => undefined);
      await thread.end();
    },
  };
};
