import { describe, test } from '@jest/globals';
import { surviveKills } from '../support/kill-rounds.ts';

describe('gaps §6, §7: kill -9 under 16 writers', () => {
  test('loses no acknowledged operation and leaves none half done', async () => {
    await surviveKills(100);
  }, 600_000);
});
