/** A small share of test/long/rebuild.test.ts. */
import { expect, test } from '@jest/globals';
import { surviveRebuilds } from '../support/rebuild-rounds.ts';

test('a rebuild under load is killed half way, and the next one ends well', async () => {
  await expect(
    surviveRebuilds({ writers: 16, kills: 1, operations: 220 }),
  ).resolves.toBeUndefined();
}, 120_000);
