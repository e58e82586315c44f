import { describe, test } from '@jest/globals';
import { surviveKills } from '../support/kill-rounds.ts';
import { timesOf } from '../support/long-run-share.ts';

describe('gaps §6, §7: kill -9 under 16 writers', () => {
  test('L1, P4: loses no acknowledged operation and leaves none half done', async () => {
    await surviveKills(timesOf(25, 1));
  }, 240_000);
});
