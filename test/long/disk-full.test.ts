/** A full disk stops commands and nothing else, and only until there is space again (faults: SQLite). */
import { describe, expect, test } from '@jest/globals';
import { surviveFullDisks } from '../support/full-disk-rounds.ts';
import { noSmallDisk } from '../support/small-disk.ts';

const ROUNDS = 20;
const missing = noSmallDisk();
const about = missing === undefined ? describe : describe.skip;

about(`disk full${missing === undefined ? '' : ` (skipped: ${missing})`}`, () => {
  test('commands get 503, reads go on, and commands succeed again without a restart', async () => {
    await expect(surviveFullDisks(ROUNDS)).resolves.toBeUndefined();
  }, 400_000);
});
