/** A garbage collection that meets no tick leaves `process.nextTick` as it was. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';

const MODULE = join(import.meta.dirname, '../../shared/runtime/process-life.ts');

/** Prints whether a tick before the collections and one after them have one hidden class. */
const SCRIPT = `
import { executionAsyncResource } from 'node:async_hooks';
const { keepTickObject } = await import(process.argv[1]);
const isKept = new WeakRef(await keepTickObject());
const afterGc = () => new Promise((resolve) => setTimeout(() => { gc(); resolve(); }));
for (let count = 0; count < 10; count += 1) await afterGc();
const later = await new Promise((resolve) => {
  process.nextTick(() => resolve(executionAsyncResource()));
});
const first = isKept.deref();
console.log(first !== undefined && later !== first && %HaveSameMap(first, later));
`;

test('the object of the first tick stays, and with it the form of all of them', () => {
  const flags = ['--expose-gc', '--allow-natives-syntax', '--input-type=module'];
  const { stdout, stderr } = spawnSync(process.execPath, [...flags, '-e', SCRIPT, MODULE], {
    encoding: 'utf8',
  });
  expect({ stdout, stderr }).toEqual({ stdout: 'true\n', stderr: '' });
});
