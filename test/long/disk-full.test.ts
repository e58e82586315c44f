/** A full disk stops writes and nothing else, and is over as soon as there is room (faults: SQLite). */
import { describe, expect, test } from '@jest/globals';
import { surviveFullDisks } from '../support/full-disk-rounds.ts';
import { noSmallDisk } from '../support/small-disk.ts';

const ROUNDS = 20;
const missing = noSmallDisk();
const about = missing === undefined ? describe : describe.skip;

about(`disk full${missing === undefined ? '' : ` (skipped: ${missing})`}`, () => {
  test('commands are refused, reads go on, and it recovers without a restart', async () => {
    await expect(surviveFullDisks(ROUNDS)).resolves.toBeUndefined();
  }, 400_000);
});
