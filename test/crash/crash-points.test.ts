/**
 * A share of the table of crash points; test/long/crash-points.test.ts takes all of it. The point that is
 * asked about most, after the provider has acted, is in other-provider.test.ts.
 */
import { expect, test } from '@jest/globals';
import { CRASH_POINTS, type CrashPoint } from '../support/crash-points.ts';
import { surviveCrashes } from '../support/crash-rounds.ts';

const SHARE: CrashPoint[] = ['sale: after append opened'];

test('L1, M4, M6, gaps §6, §7: a process that dies at an await: the repeat gets its response, and money moves once', async () => {
  expect(CRASH_POINTS).toEqual(expect.arrayContaining(SHARE));
  expect(await surviveCrashes(SHARE)).toBe(SHARE.length);
}, 240_000);
