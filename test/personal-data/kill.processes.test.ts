/** A process that is killed in a refill, or between a key and its box, loses no key that was given, and gives none twice. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { NODE } from '../support/service-processes.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';
import { KEK, openKeys } from './describe-key-store.ts';

const MAIN = join(import.meta.dirname, '../support/taking-keys-main.ts');
/** Odd numbers of batches, so that the kill comes anywhere in one. */
const KILLED_AFTER_KEYS = [1, 200, 700, 1_500];

const takenUntilKilled = async (folder: string, least: number): Promise<string[]> => {
  const file = join(folder, `taken-${crypto.randomUUID()}`);
  writeFileSync(file, '');
  const child = spawn(NODE, [MAIN, folder, KEK, file], { stdio: 'inherit' });
  const taken = () => readFileSync(file, 'utf8').split('\n').slice(0, -1);
  await until(`${least} keys are taken`, () => taken().length >= least);
  child.kill('SIGKILL');
  await once(child, 'exit');
  return taken();
};

test('after every kill each key that was given is stored, and no id was given twice', async () => {
  using folder = temporaryFolder();
  const taken: string[] = [];
  for (const least of KILLED_AFTER_KEYS) {
    // Two at once: one is killed while the other one writes.
    const both = [takenUntilKilled(folder.path, least), takenUntilKilled(folder.path, least)];
    taken.push(...(await Promise.all(both)).flat());
  }
  expect(new Set(taken).size).toBe(taken.length);
  const keys = await openKeys({ fileOf: (name) => join(folder.path, name) });
  const found = [...(await keys.read(taken)).values()];
  expect(found.filter((key) => typeof key === 'string')).toEqual([]);
  await keys.close();
}, 120_000);
