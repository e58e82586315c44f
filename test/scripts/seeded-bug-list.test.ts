/** A seeded bug that no longer fits the code would say nothing: its place is there, and changes. */
import { existsSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { SEEDED_BUGS, UNNOTICED } from '../support/seeded-bug-list.ts';
import { markedPlaces, withBug } from '../support/seeded-bugs.ts';
import { ROOT } from '../support/service.ts';

const bugs = [...SEEDED_BUGS, ...UNNOTICED];
const marked = markedPlaces();
const places = new Map(marked);

test.each(bugs)('$name', (bug) => {
  const place = places.get(bug.at);
  if (place === undefined) throw new Error(`no source has the comment "seeded bug: ${bug.at}"`);
  const buggy = withBug(place, bug);
  expect(buggy).not.toBe(`${place.before}${place.text}${place.after}`);
  expect(() => stripTypeScriptTypes(buggy)).not.toThrow();
});

test('each has a name of its own, and a test file that is there', () => {
  expect(new Set(bugs.map(({ name }) => name)).size).toBe(bugs.length);
  expect(SEEDED_BUGS.filter(({ test }) => !existsSync(join(ROOT, test)))).toEqual([]);
});

test('each comment in the sources stands once, and belongs to a bug', () => {
  const ids = marked.map(([id]) => id);
  expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
  expect(ids.filter((id) => !bugs.some(({ at }) => at === id))).toEqual([]);
});
