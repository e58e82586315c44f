/** As in test/e2e/crowd.test.ts, and with answers that are not read, for as long as one merchant would keep it up, and trickling too. */
import { describe, test } from '@jest/globals';
import { withstandHalfSent, withstandUnread } from '../support/crowd-rounds.ts';

describe('A5: a crowd of connections of one merchant leaves the others their service', () => {
  test('2,300 creates whose bodies never come, for 30 s', async () => {
    await withstandHalfSent(30);
  }, 240_000);

  test.each([
    { connections: 400, listsOfEach: 1, seconds: 35 },
    { connections: 400, listsOfEach: 20, seconds: 35 },
    { connections: 100, listsOfEach: 20, seconds: 50, trickles: true as const },
  ])(
    '$connections connections with $listsOfEach requests each for lists of 5 MB, which read nothing, or 64 KiB each 10 s',
    (round) => withstandUnread(round),
    400_000,
  );
});
