/** What a user may not read is told as missing rights: never as damage, nor as held by a service. */
import { chmodSync, existsSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeAll, expect, test } from '@jest/globals';
import { openDataFolder } from '../../embedded/data-folder.ts';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import { openLocalKeys } from '../../shared/http/auth/local-keys.ts';
import { runCli } from '../support/cli.ts';
import { folderOfTests } from '../support/temporary-folder.ts';

const isRoot = process.geteuid?.() === 0;
const folder = folderOfTests();
const data = join(folder, 'data');
const manifest = join(folder, 'kept.manifest.json');
const verify = ['verify', '--data', data];
const kept = ['verify', '--all', '--manifest', manifest];

/** Above the folder nothing keeps the other user out. */
const letThrough = (path: string): void => chmodSync(path, statSync(path).mode | 0o011);

beforeAll(async () => {
  if (isRoot) letThrough(dirname(folder));
  openDataFolder(data).release();
  await openLocalKeys(data);
  await (await openSqliteEventStore({ file: join(data, 'events.sqlite') })).close();
  writeFileSync(manifest, '{}');
  // Each verb's module is loaded while this process may read all of them.
  for (const args of [['token'], verify, kept]) await runCli(args, { DATA_DIR: data });
});

const OTHER_USER = 65_534;
afterEach(() => {
  if (isRoot) process.seteuid?.(0);
  for (const path of [data, ...FILES.values()]) if (existsSync(path)) chmodSync(path, 0o700);
});

const FILES = new Map([
  ['key', join(data, 'signing-key.json')],
  ['lock', join(data, 'service.lock')],
  ['log', join(data, 'events.sqlite')],
  ['manifest', manifest],
]);

test.each([
  ['the signing key', ['token'], 'key'],
  ['the lock of a stopped folder', verify, 'lock'],
  ['the log of a stopped folder', verify, 'log'],
  ['a kept manifest', kept, 'manifest'],
])('%s', async (_what, args, name) => {
  const file = String(FILES.get(name));
  for (const path of [folder, data, ...FILES.values()]) chmodSync(path, 0o755);
  chmodSync(file, 0o000);
  if (isRoot) process.seteuid?.(OTHER_USER);
  const { code, stdout, stderr } = await runCli(args, { DATA_DIR: data });
  expect({ code, stdout, stderr }).toEqual({
    code: 1,
    stdout: '',
    stderr: `payments: ${file} cannot be read by this user (EACCES), whose id is ${process.geteuid?.()}\n`,
  });
});

test.each([[['token']], [verify]])('a folder that may not be entered: %j', async (args) => {
  chmodSync(folder, 0o755);
  chmodSync(data, 0o000);
  if (isRoot) process.seteuid?.(OTHER_USER);
  const { code, stderr } = await runCli(args, { DATA_DIR: data });
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /^payments: \S+ cannot be read by this user \(EACCES\), whose id is \d+\n$/,
  );
});
