/** A seeded bug that no longer fits the code would say nothing: each place is there, and once. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { SEEDED_BUGS, UNNOTICED } from '../support/seeded-bug-list.ts';
import { ROOT } from '../support/service.ts';

const bugs = [...SEEDED_BUGS, ...UNNOTICED];

test.each(bugs)('$name', ({ file, find, put }) => {
  expect(readFileSync(join(ROOT, file), 'utf8').split(find)).toHaveLength(2);
  expect(put).not.toBe(find);
});

test('each has a name of its own, and tests that are there', () => {
  expect(new Set(bugs.map(({ name }) => name)).size).toBe(bugs.length);
  const tests = [...new Set(SEEDED_BUGS.flatMap((bug) => bug.tests))];
  expect(tests.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});
