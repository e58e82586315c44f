/**
 * The table "Tampering" of docs/reliability.md, measured: every tampering on a copy of a log, of several
 * thousand events in the long run. The cells stand on the page alone; this fails where one is not true.
 */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { shareOf, timesOf } from '../support/long-run-share.ts';
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

/** They do not hang on the size of the log. */
const FIRST = [
  'every sum of a payment, all hashes right, read models deleted',
  "a read model's body",
];
const rows = ALL_ROWS.toSorted((a, b) => FIRST.indexOf(b.name) - FIRST.indexOf(a.name));
const folder = temporaryFolder();
let original: Original;
beforeAll(async () => {
  original = await makeOriginal(folder.path, timesOf(1_000, 60));
}, 240_000);
afterAll(() => folder.remove());

test('the page has the table, with a row for each tampering', () => {
  expect([...rowsOnPage().keys()]).toEqual(ALL_ROWS.map(({ name }) => name));
  expect(original.events).toBeGreaterThan(timesOf(2_000, 120));
});

test.each(shareOf(rows, 2).map((tampering) => [tampering.name, tampering] as const))(
  'L3: %s: every command says what the page says, and none says fine of it',
  async (name, tampering) => {
    const row = await measure(original, tampering);
    expect(lineOf(row)).toBe(rowsOnPage().get(name));
    expect(wronglyFine(row)).toEqual([]);
  },
  240_000,
);
