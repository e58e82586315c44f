/** gaps §7, §17: restores, outages and acknowledgements in any order. */
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { timesOf } from '../support/long-run-share.ts';
import { NO_RETRIES, openInProcess } from '../support/service-in-process.ts';
import { histories, runHistory, type Seen } from './restored.ts';

test('after every step of a history the provider has moved no more than the responses admit', async () => {
  const seen: Seen = { steps: 0, restores: 0, definite: 0, moved: 0 };
  let first = 0;
  await fc.assert(
    fc.asyncProperty(histories(12), async (history) => {
      await using service = await openInProcess(NO_RETRIES);
      first += 10;
      await runHistory(service, history, first % 90, seen);
    }),
    { numRuns: timesOf(150, 5), endOnFailure: true },
  );
  // Which of them a short run meets is random.
  expect(timesOf(seen.definite, seen.restores)).toBeGreaterThan(0);
  expect(seen.moved).toBeGreaterThan(0);
});
