/** Many at once cost one call. */
import { expect, test } from '@jest/globals';
import { shareCall } from '../../shared/runtime/scheduling.ts';
import { manualClock } from '../support/manual-clock.ts';

const GOOD_FOR_MS = 1000;

/** A call that ends by hand, and each time it was made. */
const callByHand = () => {
  const clock = manualClock();
  const calls: PromiseWithResolvers<string>[] = [];
  const ping = shareCall(
    () => {
      const one = Promise.withResolvers<string>();
      calls.push(one);
      return one.promise;
    },
    GOOD_FOR_MS,
    clock.nowMs,
  );
  return { clock, calls, ping };
};

test('a caller that comes while it is under way waits for the same call, however long that takes', async () => {
  const { clock, calls, ping } = callByHand();
  const first = ping();
  await clock.advance(10 * GOOD_FOR_MS);
  const second = ping();
  calls[0]?.resolve('up');
  expect(await Promise.all([first, second])).toEqual(['up', 'up']);
  expect(calls).toHaveLength(1);
});

test('what came of it is good for its time from when it came, and no longer', async () => {
  const { clock, calls, ping } = callByHand();
  void ping();
  await clock.advance(GOOD_FOR_MS);
  calls[0]?.resolve('up');
  await clock.advance(GOOD_FOR_MS - 1);
  expect(await ping()).toBe('up');
  expect(calls).toHaveLength(1);
  await clock.advance(1);
  void ping();
  expect(calls).toHaveLength(2);
});

test('a failure is shared as well, and the call made again when its time is over', async () => {
  const { clock, calls, ping } = callByHand();
  const first = expect(ping()).rejects.toThrow('down');
  calls[0]?.reject(new Error('down'));
  await first;
  await expect(ping()).rejects.toThrow('down');
  await clock.advance(GOOD_FOR_MS);
  const next = ping();
  calls[1]?.resolve('up');
  expect(await next).toBe('up');
});
