/** Backups of the keys of personal data, and the rotation of their master key, as an operator types them. */
import {
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { KeyStore, PersonalKey } from '../../personal-data/port.ts';
import { expectError, runCli } from '../support/cli.ts';
import { payment, SECRET, startInProcess } from '../support/service-in-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { KEK, NEXT_KEK, openKeys, takeMany } from './describe-key-store.ts';

const { path: folder, remove } = temporaryFolder();
const dataDir = join(folder, 'data');
const inData = (name: string): string => join(dataDir, name);
const env = { DATA_DIR: dataDir, JWT_SECRET: SECRET, NO_COLOR: '1' };
const cli = (args: string[], own: NodeJS.ProcessEnv = {}) =>
  runCli(args, { ...env, PERSONAL_DATA_KEK: KEK, ...own });
const ROTATING = { PERSONAL_DATA_KEK: NEXT_KEK, PERSONAL_DATA_PREVIOUS_KEK: KEK };

let keys: KeyStore;
let live: PersonalKey[];
let erased: Uint8Array;

beforeAll(async () => {
  await using service = await startInProcess({
    dataDir,
    env: { JWT_SECRET: SECRET, PERSONAL_DATA_KEK: KEK },
  });
  expect((await service.post('/api/v1/payments', payment())).status).toBe(200);
  writeFileSync(inData('personal.kek'), KEK, { mode: 0o600 });
  keys = await openKeys({ fileOf: inData });
  live = await takeMany(keys, 600);
  const { id } = await keys.take(10_000);
  using db = new DatabaseSync(inData('keys.sqlite'), { readOnly: true });
  const row = db.prepare('SELECT wrapped FROM personal_key WHERE id = ?').get(id);
  erased = row?.wrapped as Uint8Array;
  await keys.erase([id]);
});
afterAll(async () => {
  await keys.close();
  remove();
});

const warnings = async (): Promise<string[]> => {
  const { stdout } = await cli(['doctor', '--format', 'json']);
  return JSON.parse(stdout).dataFolder.keysUnsaved;
};

test('a backup of the folder has neither the keys nor the master key', async () => {
  const copy = join(folder, 'copy');
  expect(await cli(['backup', copy])).toMatchObject({ code: 0 });
  const names = readdirSync(copy);
  expect(names).toContain('events.sqlite');
  expect(names.filter((name) => /^(keys|personal)/.test(name))).toEqual([]);
  for (const name of names) expect(readFileSync(join(copy, name)).includes(KEK)).toBe(false);
});

test('a backup of the keys has them alone, wrapped, without one that was erased', async () => {
  const copy = join(folder, 'keys');
  const { code, stdout } = await cli(['backup', '--keys', copy]);
  expect([code, stdout]).toEqual([0, expect.stringContaining('keys.sqlite')]);
  expect(readdirSync(copy)).toEqual(['keys.sqlite']);
  const file = join(copy, 'keys.sqlite');
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const bytes = readFileSync(file);
  for (const { id, key } of live) {
    expect(bytes.includes(id)).toBe(true);
    expect(bytes.includes(key.export())).toBe(false);
  }
  expect(bytes.includes(Buffer.from(erased))).toBe(false);
  const checked = await cli(['keys', 'rewrap', '--data', copy, '--format', 'json']);
  expect(JSON.parse(checked.stdout)).toEqual({ rewrapped: 0, unreadable: 0 });
  const other = await cli(['keys', 'rewrap', '--data', copy], { PERSONAL_DATA_KEK: NEXT_KEK });
  expectError(other, 1, 'PERSONAL_DATA_KEK: keys of personal data are wrapped by another');
});

test('a folder without keys has no backup of them', async () => {
  const none = { DATA_DIR: join(folder, 'none') };
  expectError(await cli(['backup', '--keys', join(folder, 'x')], none), 1, 'holds no keys');
  expectError(await cli(['keys', 'rewrap'], none), 1, 'keys.sqlite does not exist');
});

test('doctor warns until there is a backup of the keys, and when it is older than a day', async () => {
  const noted = inData('backup.keys');
  utimesSync(noted, new Date(), new Date(Date.now() - 86_460_000));
  expect(await warnings()).toEqual([
    expect.stringMatching(/^no backup of the keys .* is younger than a day/),
  ]);
  const { stdout } = await cli(['doctor']);
  expect(stdout).toContain('warning: no backup of the keys');
  expect(await cli(['backup', '--keys', join(folder, 'later')])).toMatchObject({ code: 0 });
  expect(await warnings()).toEqual([]);
});

test('a restore of the log leaves the keys and the master key where they are', async () => {
  const before = ['keys.sqlite', 'personal.kek'].map((name) => statSync(inData(name)).ino);
  expect(await cli(['restore', join(folder, 'copy')])).toMatchObject({ code: 0 });
  expect(['keys.sqlite', 'personal.kek'].map((name) => statSync(inData(name)).ino)).toEqual(before);
  expect(existsSync(inData('backup.keys'))).toBe(true);
});

test('a rotation of the master key rewraps each key while the store is in use, and says so', async () => {
  const { code, stdout, stderr } = await cli(['keys', 'rewrap'], ROTATING);
  expect([code, stdout]).toEqual([
    0,
    expect.stringMatching(/^[\d,]+ keys are rewrapped by the master key that is set\n$/),
  ]);
  expect(stderr).toContain('payments backup --keys');
  const again = await cli(['keys', 'rewrap', '--format', 'json'], ROTATING);
  expect(JSON.parse(again.stdout)).toEqual({ rewrapped: 0, unreadable: 0 });
  const rotated = await openKeys({ fileOf: inData }, NEXT_KEK);
  const found = await rotated.read(live.map(({ id }) => id));
  for (const { id, key } of live) expect(key.equals(found.get(id) as never)).toBe(true);
  await rotated.close();
});

test('a key that no master key opens is counted, and fails the rotation', async () => {
  using db = new DatabaseSync(inData('keys.sqlite'));
  db.exec(
    "UPDATE personal_key SET kek = 'strange' WHERE id = (SELECT id FROM personal_key WHERE wrapped IS NOT NULL ORDER BY id LIMIT 1 OFFSET 5)",
  );
  const failed = await cli(['keys', 'rewrap'], { PERSONAL_DATA_KEK: NEXT_KEK });
  expectError(failed, 3, 'no master key that is set opens 1 key:');
});

test('without the setting the master key is that of the folder, and without both there is none', async () => {
  writeFileSync(inData('personal.kek'), `${NEXT_KEK}\n`, { mode: 0o600 });
  const own = { PERSONAL_DATA_KEK: '' };
  expectError(await cli(['keys', 'rewrap'], own), 3, 'no master key that is set opens 1 key:');
  writeFileSync(join(folder, 'later', 'nothing'), '');
  const none = await cli(['keys', 'rewrap', '--data', join(folder, 'later')], own);
  expectError(none, 1, 'PERSONAL_DATA_KEK: is not set, and there is no personal.kek');
});
