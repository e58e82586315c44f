import { expect, test } from '@jest/globals';
import { createGenerationsMap } from '../../shared/event-store/chain.ts';

test('the last keys that were set stay, and at most twice as many of all', () => {
  const map = createGenerationsMap<number>(3);
  for (let n = 0; n < 20; n += 1) {
    map.set(`key ${n}`, n);
    map.set(`key ${n}`, n + 100);
    const kept = Array.from({ length: n + 1 }, (_, at) => map.get(`key ${at}`));
    const newest = kept.lastIndexOf(undefined) + 1;
    expect(kept.slice(newest)).toEqual(kept.slice(newest).map((_, at) => newest + at + 100));
    expect(kept.length - newest).toBeGreaterThanOrEqual(Math.min(n + 1, 3));
    expect(kept.filter((value) => value !== undefined).length).toBeLessThanOrEqual(6);
  }
});
