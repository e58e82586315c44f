/** Waiting for what another process writes: one question for all, and never too many of them. */
import { describe, expect, test } from '@jest/globals';
import { createRevisionPoller } from '../../shared/read-models/mongodb/read-models.ts';
import { manualClock } from '../support/manual-clock.ts';

describe('gaps §9: waiting for revisions that another process writes', () => {
  /** A store that can be filled, needs `responseMs` for an answer and counts the questions. */
  const openStore = (responseMs = 0) => {
    const clock = manualClock();
    const revisions = new Map<string, number>();
    const seen = { questions: 0, atOnce: 0, mostAtOnce: 0 };
    const poller = createRevisionPoller(async (ids) => {
      seen.questions += 1;
      seen.atOnce += 1;
      seen.mostAtOnce = Math.max(seen.mostAtOnce, seen.atOnce);
      if (responseMs > 0)
        await new Promise<void>((respond) => clock.startTimer(respond, responseMs));
      seen.atOnce -= 1;
      return new Map([...revisions].filter(([id]) => ids.includes(id)));
    }, clock.startTimer);
    return { clock, revisions, seen, poller };
  };

  test('256 waits ask one question at a time', async () => {
    const { clock, seen, poller } = openStore(10);
    const waits = Array.from({ length: 256 }, (_, n) => poller.wait(`pay_${n}`, 1, 300));
    await clock.advance(300);
    expect(await Promise.all(waits)).toEqual(waits.map(() => false));
    expect(seen.mostAtOnce).toBe(1);
    // A pause of 10 ms, and 10 ms for each answer.
    expect(seen.questions).toBe(15);
    poller.close();
  });

  test('beside a projector that stands still the fourth wait ends at once, until one finds it moving', async () => {
    const { clock, revisions, seen, poller } = openStore();
    for (let n = 0; n < 3; n += 1) {
      const inVain = poller.wait(`pay_${n}`, 1, 500);
      await clock.advance(500);
      expect(await inVain).toBe(false);
    }
    const atOnce = await Promise.all([3, 4, 5].map((n) => poller.wait(`pay_${n}`, 1, 500)));
    expect(atOnce).toEqual([false, false, false]);
    const before = seen.questions;
    revisions.set('pay_3', 1);
    await clock.advance(40);
    expect(seen.questions).toBe(before + 1);
    const again = poller.wait('pay_6', 1, 500);
    revisions.set('pay_6', 1);
    await clock.advance(40);
    expect(await again).toBe(true);
    poller.close();
  });

  test('without a wait the store is not asked', async () => {
    const { clock, revisions, seen, poller } = openStore();
    revisions.set('pay_1', 1);
    const wait = poller.wait('pay_1', 1, 1000);
    await clock.advance(10);
    expect(await wait).toBe(true);
    expect([seen.questions, clock.timers()]).toEqual([1, 0]);
    poller.close();
  });

  test('a store that cannot answer ends no wait before its time, nor the asking', async () => {
    const clock = manualClock();
    let failing = true;
    const poller = createRevisionPoller(async () => {
      if (failing) throw new Error('out of reach');
      return new Map([['pay_1', 3]]);
    }, clock.startTimer);
    const wait = poller.wait('pay_1', 3, 5000);
    await clock.advance(50);
    failing = false;
    await clock.advance(40);
    expect(await wait).toBe(true);
    poller.close();
  });
});
