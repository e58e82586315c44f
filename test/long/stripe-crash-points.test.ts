/**
 * `kill -9` through Stripe's driver: in the process before and after each call and append, and from
 * outside while a request is at Stripe, which then acts, does not act, or acts late.
 */
import { expect, test } from '@jest/globals';
import { PROCESS_POINTS, STRIPE_POINTS } from '../support/stripe-crash-points.ts';
import { surviveStripeCrashes } from '../support/stripe-crash-rounds.ts';

test('M1-M6, L1: a process that dies anywhere between open, append, confirm and outcome moves money once', async () => {
  const died = await surviveStripeCrashes(PROCESS_POINTS, STRIPE_POINTS);
  process.stderr.write(`stripe crash points: died at ${died} points, 0 lost, 0 doubled\n`);
  expect(died).toBe(PROCESS_POINTS.length + STRIPE_POINTS.length);
  expect(died).toBeGreaterThanOrEqual(56);
}, 900_000);
