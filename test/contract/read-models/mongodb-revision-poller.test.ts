/** Waiting for what another process writes: one question for all, and never too many of them. */
import { describe, expect, test } from '@jest/globals';
import { createRevisionPoller } from '../../../shared/read-models/mongodb/revision-poller.ts';

describe('waiting for revisions that another process writes', () => {
  /** A store that can be filled, and counts what it is asked. */
  const store = (responseMs = 0) => {
    const revisions = new Map<string, number>();
    const seen = { requested: 0, atOnce: 0, mostAtOnce: 0 };
    const poller = createRevisionPoller({
      revisionsOf: async (ids) => {
        seen.requested += 1;
        seen.atOnce += 1;
        seen.mostAtOnce = Math.max(seen.mostAtOnce, seen.atOnce);
        await new Promise((resolve) => setTimeout(resolve, responseMs));
        seen.atOnce -= 1;
        return new Map([...revisions].filter(([id]) => ids.includes(id)));
      },
    });
    return { revisions, seen, poller };
  };

  test('256 who wait ask one question at a time, ever more rarely', async () => {
    const { seen, poller } = store(10);
    const waits = Array.from({ length: 256 }, (_, n) => poller.wait(`pay_${n}`, 1, 300));
    expect(await Promise.all(waits)).toEqual(waits.map(() => false));
    expect(seen.mostAtOnce).toBe(1);
    expect(seen.requested).toBeGreaterThan(2);
    expect(seen.requested).toBeLessThan(15);
    poller.close();
  });

  test('nobody who waits: nobody asks', async () => {
    const { revisions, seen, poller } = store();
    revisions.set('pay_1', 1);
    expect(await poller.wait('pay_1', 1, 1000)).toBe(true);
    const { requested } = seen;
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(seen.requested).toBe(requested);
    poller.close();
  });

  test('one who comes later is answered soon, although the others have waited long', async () => {
    const { revisions, poller } = store();
    const long = poller.wait('pay_1', 1, 400);
    await new Promise((resolve) => setTimeout(resolve, 150));
    revisions.set('pay_2', 7);
    const began = performance.now();
    expect(await poller.wait('pay_2', 7, 1000)).toBe(true);
    expect(performance.now() - began).toBeLessThan(200);
    expect(await long).toBe(false);
    poller.close();
  });

  test('a store that cannot answer ends no wait before its time, nor the asking', async () => {
    let failing = true;
    const poller = createRevisionPoller({
      revisionsOf: async () => {
        if (failing) throw new Error('out of reach');
        return new Map([['pay_1', 3]]);
      },
    });
    const wait = poller.wait('pay_1', 3, 5000);
    await new Promise((resolve) => setTimeout(resolve, 50));
    failing = false;
    expect(await wait).toBe(true);
    poller.close();
  });

  test('given up or closed: everybody goes with false', async () => {
    const { poller } = store();
    const first = poller.wait('pay_1', 1, 60_000);
    poller.giveUp();
    expect(await first).toBe(false);
    const second = poller.wait('pay_1', 1, 60_000);
    poller.close();
    expect(await second).toBe(false);
    expect(await poller.wait('pay_1', 1, 60_000)).toBe(false);
  });
});
