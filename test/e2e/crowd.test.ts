import { describe, test } from '@jest/globals';
import { withstandHalfSent, withstandUnread } from '../support/crowd-rounds.ts';

describe('A5: a crowd of connections of one merchant leaves the others their service', () => {
  test('2,300 creates whose bodies never come: no other merchant is refused or waits', async () => {
    await withstandHalfSent(3);
  }, 240_000);

  test('400 connections that do not read lists of 5 MB: the memory stays within bounds, and comes back', async () => {
    await withstandUnread({ connections: 400, listsOfEach: 20, seconds: 3 });
  }, 400_000);
});
