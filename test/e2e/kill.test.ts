import { describe, test } from '@jest/globals';
import { surviveKills } from '../support/kill-rounds.ts';
import { timesOf } from '../support/long-run-share.ts';

describe('kill -9 under 16 writers (gaps §6, §7)', () => {
  test('every acknowledged operation is there afterwards and none is half done', async () => {
    await surviveKills(timesOf(25, 8));
  }, 60_000);
});
