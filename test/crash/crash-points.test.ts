/** The table of crash points (faults, "Tests"): a share of it here, all of it in test/long. */
import { expect, test } from '@jest/globals';
import { CRASH_POINTS, type CrashPoint } from '../support/crash-points.ts';
import { surviveCrashes } from '../support/crash-rounds.ts';

const SHARE: CrashPoint[] = ['sale: before append intent', 'capture: after provider'];

test('gaps §6, §7: dead at an await, the repeat is answered and money moved once', async () => {
  expect(CRASH_POINTS).toEqual(expect.arrayContaining(SHARE));
  expect(await surviveCrashes(SHARE)).toBe(SHARE.length);
}, 30_000);
