/** A share of the model checking; test/long/model.test.ts checks thousands of sequences. */
import { describe, expect, test } from '@jest/globals';
import { testOfLongRun, timesOf } from '../support/long-run-share.ts';
import { agreeWithModel } from './run.ts';

/** Seeds of sequences that once failed. */
const KEPT_SEEDS: number[] = [2055767803];

describe('M1-M8: after any sequence of steps, amounts and status are those of plain arithmetic', () => {
  test('new sequences in every run', async () => {
    const visited = await agreeWithModel({
      sequences: timesOf(100, 50),
      commands: 14,
      slow: false,
    });
    // Which pairs of status and command a run meets is random; the long run has to meet them all.
    expect(visited.size).toBeGreaterThan(8);
  }, 240_000);

  for (const seed of KEPT_SEEDS) {
    testOfLongRun(
      `the seed ${seed}, which failed once`,
      async () => {
        await agreeWithModel({ sequences: 50, commands: 25, slow: false, seed });
      },
      240_000,
    );
  }
});
