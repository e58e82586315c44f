/** A share of test/long/tampering-table.test.ts: two rows of the table of docs/reliability.md. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
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

/** None of them hangs on the size of the log. */
const SHARE = ALL_ROWS.filter(({ name }) =>
  ['every sum of a payment, all hashes right, read models deleted', "a read model's body"].includes(
    name,
  ),
);
const folder = temporaryFolder();
let original: Original;
beforeAll(async () => {
  original = await makeOriginal(folder.path, 60);
}, 240_000);
afterAll(() => folder.remove());

test.each(SHARE.map((tampering) => [tampering.name, tampering] as const))(
  'L3: %s: every command says what the page says',
  async (name, tampering) => {
    const row = await measure(original, tampering);
    expect(lineOf(row)).toBe(rowsOnPage().get(name));
    expect(wronglyFine(row)).toEqual([]);
  },
  240_000,
);
