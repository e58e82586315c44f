/** The token buckets by which requests are limited (gaps §11). */
import { describe, expect, test } from '@jest/globals';
import { createRateLimiter, senderOf } from '../../shared/http/auth/hooks.ts';

describe('gaps §11: the token buckets of a rate limiter', () => {
  test('are bounded: a flood of names never empties the bucket that is used, and a forgotten one starts full', () => {
    const limiter = createRateLimiter(2, () => 1000);
    const rate = { perSecond: 0.1, burst: 1 };
    limiter.take('a', rate);
    for (let n = 0; n < 10; n += 1) {
      limiter.take(`other-${n}`, rate);
      expect(limiter.take('a', rate)).toBeGreaterThan(0);
    }
    expect(limiter.take('other-0', rate)).toBeUndefined();
  });

  test('a bucket fills at its rate up to its burst, and gives the whole seconds until its next token', () => {
    let nowMs = 1000;
    const limiter = createRateLimiter(10, () => nowMs);
    const take = () => limiter.take('a', { perSecond: 0.5, burst: 2 });
    expect([take(), take(), take(), take()]).toEqual([undefined, undefined, 2, 2]);
    nowMs += 999;
    expect(take()).toBe(2);
    nowMs += 1;
    expect(take()).toBe(1);
    nowMs += 1000;
    expect([take(), take()]).toEqual([undefined, 2]);
    nowMs += 3_600_000;
    expect([take(), take(), take()]).toEqual([undefined, undefined, 2]);
  });

  test('a burst of 0 lets one request through', () => {
    const limiter = createRateLimiter(10, () => 1000);
    const take = () => limiter.take('a', { perSecond: 100, burst: 0 });
    expect([take(), take()]).toEqual([undefined, 1]);
  });
});

describe('gaps §11: a sender without a valid token', () => {
  test.each([
    ['203.0.113.7', '203.0.113.7'],
    ['::ffff:203.0.113.7', '::ffff:203.0.113.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['2001:db8::6', '2001:db8:0:0'],
    ['fe80::1%eth0', 'fe80:0:0:0'],
    [undefined, ''],
  ])('%s counts as %j', (remoteAddress, name) => {
    expect(senderOf({ remoteAddress })).toBe(name);
  });
});
