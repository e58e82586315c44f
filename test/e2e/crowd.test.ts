import { describe, test } from '@jest/globals';
import { withstandHalfSent } from '../support/crowd-rounds.ts';

describe('A5: a crowd of connections of one merchant leaves the others their service', () => {
  test('2,300 creates whose bodies never come: no other merchant is refused or waits', async () => {
    await withstandHalfSent(1);
  }, 240_000);
});
