import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import { expect, test } from '@jest/globals';
import { temporaryFolder } from '../support/temporary-folder.ts';
import {
  describeKeyStore,
  KEK,
  type KeysPlace,
  NEXT_KEK,
  openKeys,
  rewrapAll,
  takeMany,
} from './describe-key-store.ts';

const placeIn = (folder: string, remove: () => void): KeysPlace => {
  const run = async (sql: string, ...values: unknown[]) => {
    using db = new DatabaseSync(join(folder, 'keys.sqlite'), { timeout: 5000 });
    return db.prepare(sql).all(...(values as SQLInputValue[]));
  };
  return {
    fileOf: (name) => join(folder, name),
    rows: {
      get: async (id) => {
        const [row] = await run(
          'SELECT kek, wrapped, erased_at AS erasedAt FROM personal_key WHERE id = ?',
          id,
        );
        return row as Awaited<ReturnType<KeysPlace['rows']['get']>>;
      },
      set: async (id, { kek, wrapped }) => {
        await run('UPDATE personal_key SET kek = ?, wrapped = ? WHERE id = ?', kek, wrapped, id);
      },
      add: async (id, { kek, wrapped }) => {
        await run(`INSERT INTO personal_key VALUES (?, ?, ?, '', NULL)`, id, kek, wrapped);
      },
    },
    drop: async () => remove(),
  };
};

describeKeyStore({
  name: 'sqlite',
  place: () => {
    const folder = temporaryFolder();
    return placeIn(folder.path, folder.remove);
  },
});

const filesWith = (folder: string, bytes: Uint8Array): string[] =>
  readdirSync(folder).filter((name) =>
    readFileSync(join(folder, name)).includes(Buffer.from(bytes)),
  );

test('an erased key is in no file any more, nor is its form under an earlier master key', async () => {
  using folder = temporaryFolder();
  const at = placeIn(folder.path, folder.remove);
  const keys = await openKeys(at);
  const taken = await takeMany(keys, 300);
  const wrapped = await Promise.all(
    taken.map(async ({ id }) => (await at.rows.get(id)).wrapped as Uint8Array),
  );
  for (const bytes of wrapped) expect(filesWith(folder.path, bytes)).not.toEqual([]);
  await keys.erase(taken.slice(0, 100).map(({ id }) => id));
  for (const bytes of wrapped.slice(0, 100)) expect(filesWith(folder.path, bytes)).toEqual([]);
  const rotating = await openKeys(at, NEXT_KEK, KEK);
  await rewrapAll(rotating);
  for (const bytes of wrapped) expect(filesWith(folder.path, bytes)).toEqual([]);
  await rotating.close();
  await keys.close();
});

test('an erasure is not done while a reader keeps the key in the write-ahead log', async () => {
  using folder = temporaryFolder();
  const at = placeIn(folder.path, folder.remove);
  const keys = await openKeys(at);
  const [one, other] = await takeMany(keys, 2);
  const wrapped = (await at.rows.get(`${one?.id}`)).wrapped as Uint8Array;
  const reader = new DatabaseSync(join(folder.path, 'keys.sqlite'), { readOnly: true });
  await keys.saveCheckpoint('a page in the write-ahead log');
  reader.exec('BEGIN; SELECT count(*) FROM personal_key');
  await expect(keys.erase([`${one?.id}`])).rejects.toThrow('may still hold erased keys');
  expect(filesWith(folder.path, wrapped)).not.toEqual([]);
  reader.exec('COMMIT');
  // As the next process does, where this one was killed.
  const next = await openKeys(at);
  await next.erase([`${one?.id}`, `${other?.id}`]);
  expect(filesWith(folder.path, wrapped)).toEqual([]);
  await next.close();
  reader.close();
  await keys.close();
}, 20_000);

test('the files are for their owner alone', async () => {
  using folder = temporaryFolder();
  const keys = await openKeys(placeIn(folder.path, folder.remove));
  await takeMany(keys, 1);
  const modes = readdirSync(folder.path).map((name) => [
    name,
    statSync(join(folder.path, name)).mode & 0o777,
  ]);
  expect(modes).toEqual(['', '-shm', '-wal'].map((end) => [`keys.sqlite${end}`, 0o600]));
  await keys.close();
});

test('a file that is no database is named by the start', async () => {
  using folder = temporaryFolder();
  const at = placeIn(folder.path, folder.remove);
  writeFileSync(at.fileOf('keys.sqlite'), 'no database'.repeat(100));
  await expect(openKeys(at)).rejects.toThrow('not a database');
});
