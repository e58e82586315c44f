/**
 * The table "Tampering" of docs/reliability.md, measured: every tampering on a copy of a log with
 * several thousand events. The cells stand on the page alone; this test fails where one is not true.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import {
  ALL_ROWS,
  lineOf,
  makeOriginal,
  measure,
  type Original,
  rowsOnPage,
  wronglyFine,
} from '../support/tampering-table.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const PAYMENTS = 1_000;
const folder = temporaryFolder();
let original: Original;
beforeAll(async () => {
  original = await makeOriginal(folder.path, PAYMENTS);
}, 120_000);
afterAll(() => folder.remove());

test('the page has the table, with a row for each tampering', () => {
  expect([...rowsOnPage().keys()]).toEqual(ALL_ROWS.map(({ name }) => name));
  expect(original.events).toBeGreaterThan(2_000);
});

describe.each(ALL_ROWS.map((tampering) => [tampering.name, tampering] as const))(
  'L3: done to the folder: %s',
  (name, tampering) => {
    test('every command says what the page says, and none says fine of it', async () => {
      const row = await measure(original, tampering);
      expect(lineOf(row)).toBe(rowsOnPage().get(name));
      expect(wronglyFine(row)).toEqual([]);
    }, 60_000);
  },
);
