/** Twenty restores under load, with clients that go on repeating their keys (gaps §17). */
import { expect, test } from '@jest/globals';
import { surviveRestores } from '../support/restore-rounds.ts';

const ROUNDS = 20;

test(`${ROUNDS} restores under load: no key is charged twice, and every outcome stays`, async () => {
  await expect(surviveRestores(ROUNDS)).resolves.toBeUndefined();
}, 900_000);
