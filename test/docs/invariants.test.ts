/** docs/invariants.md names for each invariant the tests that hold it. */
import { expect, test } from '@jest/globals';
import { textOf } from '../support/project-files.ts';

const page = textOf('docs/invariants.md');
const invariants = [...page.matchAll(/^- \*\*([A-Z]\d)\*\*/gm)].map(([, id = '']) => id);
const rows = [...page.matchAll(/^- ([A-Z]\d(?:, [A-Z]\d)*): (`test\/.*)$/gm)].flatMap(
  ([, ids = '', files = '']) =>
    ids
      .split(', ')
      .map((id): [string, string[]] => [
        id,
        [...files.matchAll(/`([^`]+)`/g)].map(([, file = '']) => file),
      ]),
);

test('each invariant has a row of tests, and each row an invariant', () => {
  expect(rows.map(([id]) => id)).toEqual(invariants);
  expect(rows.length).toBeGreaterThan(30);
});

test.each(rows)('%s is named by each test that is said to hold it', (id, files) => {
  const silent = files.filter((file) => !new RegExp(`\\b${id}\\b`).test(textOf(file)));
  expect([files.length > 0, silent]).toEqual([true, []]);
});
