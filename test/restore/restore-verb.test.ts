/**
 * `payments restore` (gaps §17): the copy is checked before anything is moved, the folder that it replaces is
 * kept, and a service starts on it, with the sealing key and the head of the log on another volume.
 */
import { createHash } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { beforeAll, expect, test } from '@jest/globals';
import { newSealingKey } from '../../audit/seals/key.ts';
import { expectError, runCli } from '../support/cli.ts';
import { payment, SECRET, startInProcess } from '../support/service-in-process.ts';
import { folderOfTests } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

const folder = folderOfTests();
const dataDir = join(folder, 'data');
const copy = join(folder, 'copy');
const keyFile = join(folder, 'seal', 'sealing-key.pem');
const seals = { SEALING_KEY_FILE: keyFile, SEAL_EVENTS_MAX: '1' };
const env = { DATA_DIR: dataDir, JWT_SECRET: SECRET, ...seals };

const cli = (...args: string[]) => runCli(args, env);
const headNow = () =>
  existsSync(`${keyFile}.head`) ? readFileSync(`${keyFile}.head`, 'utf8') : '';
const hashOf = (file: string) => createHash('sha256').update(readFileSync(file)).digest('hex');
/** Every file with its bytes, but the lock, which each verb takes. */
const bytesOf = (path: string) =>
  readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== 'service.lock')
    .map((entry) => [entry.name, hashOf(join(entry.parentPath, entry.name))]);

beforeAll(async () => {
  mkdirSync(join(folder, 'seal'));
  await using service = await startInProcess({ dataDir, env });
  expect((await service.post('/api/v1/payments', payment())).status).toBe(200);
  await until('the log is sealed', () => headNow().startsWith('{"log"'));
  expect(await cli('backup', copy)).toMatchObject({ code: 0 });
  const head = headNow();
  expect((await service.post('/api/v1/payments', payment())).status).toBe(200);
  await until('the head of the log is kept', () => headNow() !== head);
});

/** A copy of the backup that was changed by `change`. */
const changed = (name: string, change: (log: DatabaseSync, file: string) => void): string => {
  const path = join(folder, name);
  cpSync(copy, path, { recursive: true });
  const file = join(path, 'events.sqlite');
  const log = new DatabaseSync(file);
  change(log, file);
  return path;
};

test('a folder that a service holds is refused, and so is one without a log', async () => {
  await using _ = await startInProcess({ dataDir, env });
  const [held, none] = [await cli('restore', copy), await cli('restore', folder)];
  expectError(held, 1, 'held by a running service');
  expectError(none, 1, 'holds no events.sqlite');
});

test('a damaged, a forged or a foreign copy is refused, and the folder and the head stay as they are', async () => {
  const before = [bytesOf(dataDir), headNow()];
  const damaged = changed('damaged', (log, file) => {
    log.close();
    const bytes = readFileSync(file);
    bytes.fill(0, 8192, 12_288);
    writeFileSync(file, bytes);
  });
  const forged = changed('forged', (log) => {
    log.exec(`DROP TRIGGER events_no_update`);
    log.exec(`UPDATE events SET text = replace(text, '"time":"20', '"time":"19')`);
    log.close();
  });
  for (const [path, why] of [
    [damaged, /damaged|malformed/],
    [forged, /position/],
  ] as const) {
    const { code, stderr } = await cli('restore', path);
    expect([code, stderr]).toEqual([3, expect.stringMatching(why)]);
    expect(stderr).toContain(`${dataDir} is as it was`);
  }
  // The key that follows was made after the copy: a start would refuse this log.
  const own = readFileSync(keyFile, 'utf8');
  writeFileSync(keyFile, newSealingKey());
  const foreign = await cli('restore', copy);
  writeFileSync(keyFile, own);
  expectError(foreign, 3, 'another key');
  expect([bytesOf(dataDir), headNow()]).toEqual(before);
});

test('the copy is put in the place of the folder, which is kept, and the service starts on it', async () => {
  const { uid } = process.getuid?.() === 0 ? { uid: 1234 } : statSync(dataDir);
  chownSync(dataDir, uid, statSync(dataDir).gid);
  chmodSync(dataDir, 0o700);
  // Keys of personal data are never taken back: a restore leaves them in their place.
  const left = ['keys.sqlite', 'personal.kek'];
  for (const name of left) chownSync(join(dataDir, name), uid, statSync(dataDir).gid);
  const [before, ofCopy] = [bytesOf(dataDir), bytesOf(copy)];
  const { code, stdout, stderr } = await cli('restore', copy);
  expect([code, stderr]).toEqual([0, expect.stringContaining('payments reconcile --acknowledge')]);
  expect(stdout).toMatch(
    /^\S+ {2}3 events, whose chain holds\n {2}the last one is of \S+Z, 0\.0 hours ago\n/,
  );
  const [, aside = ''] = /what was there is in (.*)/.exec(stdout) ?? [];
  expect(bytesOf(aside)).toEqual(before.filter(([name]) => !left.includes(name as string)));
  expect(bytesOf(copy)).toEqual(ofCopy);
  const entries = [dataDir, ...readdirSync(dataDir).map((name) => join(dataDir, name))];
  expect(entries.map((path) => [path, statSync(path).uid, statSync(path).mode & 0o077])).toEqual(
    entries.map((path) => [path, uid, 0]),
  );
  expect(headNow()).toBe('');
  await using service = await startInProcess({ dataDir, env });
  const there = { ...env, PAYMENTS_URL: service.url };
  expect(await runCli(['verify', '--all'], there)).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^intact {2}\d+ events/),
  });
});
