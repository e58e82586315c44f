/** A process ends at every await of create, capture, void, refund, recovery and projection. */
import { expect, test } from '@jest/globals';
import { surviveCrashesByHand } from '../support/crash-by-hand.ts';
import { CRASH_POINTS, WORD_CRASH_POINTS } from '../support/crash-points.ts';
import { surviveCrashes } from '../support/crash-rounds.ts';

test('M1-M6, L1: a process that dies at any point of any operation moves money once', async () => {
  const died = await surviveCrashes(CRASH_POINTS);
  process.stderr.write(`crash points: died at ${died} points, 0 lost, 0 doubled\n`);
  expect(died).toBe(CRASH_POINTS.length);
}, 600_000);

test('M5, M6, gaps §16: nor is a word by hand lost, or the asking after it', async () => {
  const died = await surviveCrashesByHand(WORD_CRASH_POINTS);
  process.stderr.write(`crash points by hand: died at ${died} points\n`);
  expect(died).toBe(WORD_CRASH_POINTS.length);
}, 300_000);
