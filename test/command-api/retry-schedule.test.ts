/** gaps §7: when recovery looks an unresolved payment up, and when it looks again. */
import { describe, expect, test } from '@jest/globals';
import { type Attempted, createRetrySchedules } from '../../command-api/recovery/retry-schedule.ts';
import { manualClock } from '../support/manual-clock.ts';
import { until } from '../support/until.ts';

describe('gaps §7: after each wait of RECOVERY_DELAYS_MS, then hourly', () => {
  const retrySchedulesOver = (
    attempt: (id: string) => Promise<Attempted<object>>,
    delaysMs: number[],
  ) => {
    const failed: { attempts: number; nextAttemptMs: number }[] = [];
    const clock = manualClock();
    const onFailed = (_id: string, step: { attempts: number; nextAttemptMs: number }) =>
      void failed.push(step);
    const retrySchedules = createRetrySchedules({
      ...clock,
      delaysMs,
      looksMs: () => [60_000],
      attempt: ({ paymentId }) => attempt(paymentId),
      onFailed,
      unknown: {},
    });
    return { failed, clock, retrySchedules };
  };

  test('one attempt at once, then the waits with ±10% jitter, counted from the last attempt', async () => {
    const tried: number[] = [];
    const { failed, clock, retrySchedules } = retrySchedulesOver(async () => {
      tried.push(clock.nowMs());
      return { kind: 'unresolved', known: {} };
    }, [20, 60, 40]);
    retrySchedules.begin('pay_1', 'm_1');
    await clock.advance(140);
    expect(failed).toHaveLength(4);
    retrySchedules.stop();
    expect(clock.timers()).toBe(0);
    expect(failed.map(({ attempts }) => attempts)).toEqual([1, 2, 3, 4]);
    for (const [n, delayMs] of [20, 60, 40, 3_600_000].entries()) {
      expect(failed[n]?.nextAttemptMs).toBeGreaterThanOrEqual(delayMs * 0.9);
      expect(failed[n]?.nextAttemptMs).toBeLessThanOrEqual(delayMs * 1.1);
    }
    const waitedMs = tried.slice(1).map((at, n) => at - (tried[n] ?? 0));
    for (const [n, step] of failed.slice(0, 3).entries())
      expect(waitedMs[n]).toBeCloseTo(step.nextAttemptMs, 6);
  });

  test('each wait has a jitter of its own: payments that failed together are not looked up together', async () => {
    const { failed, retrySchedules } = retrySchedulesOver(
      async () => ({ kind: 'unresolved', known: {} }),
      [10_000],
    );
    for (let n = 0; n < 40; n++) retrySchedules.begin(`pay_${n}`, `m_${n}`);
    await until('all were looked up', () => failed.length === 40);
    retrySchedules.stop();
    expect(new Set(failed.map(({ nextAttemptMs }) => nextAttemptMs)).size).toBeGreaterThan(30);
  });

  test('8 payments are looked up at once, however many wait', async () => {
    let running = 0;
    let most = 0;
    let done = 0;
    const { retrySchedules } = retrySchedulesOver(async () => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
      done += 1;
      return { kind: 'resolved' };
    }, [1]);
    for (let n = 0; n < 100; n++) retrySchedules.begin(`pay_${n}`, `m_${n}`);
    await until('all are done', () => done === 100);
    expect(most).toBe(8);
    expect(retrySchedules.all.get('pay_1')).toBeUndefined();
  });

  test('another unresolved operation of the payment begins the retry schedule again, at once', async () => {
    const { failed, clock, retrySchedules } = retrySchedulesOver(
      async () => ({ kind: 'unresolved', known: {} }),
      [600_000],
    );
    retrySchedules.begin('pay_1', 'm_1');
    await until('the first attempt', () => failed.length === 1);
    retrySchedules.begin('pay_1', 'm_1');
    expect(retrySchedules.all.get('pay_1')?.nextAttemptAtMs).toBeGreaterThan(
      clock.nowMs() + 500_000,
    );
    retrySchedules.beginAnew('pay_1', 'm_1');
    await until('an attempt at once', () => failed.length === 2);
    retrySchedules.stop();
    expect(failed[1]?.attempts).toBe(1);
  });

  test('an attempt that throws counts, and the retry schedule goes on', async () => {
    const { failed, clock, retrySchedules } = retrySchedulesOver(
      () => Promise.reject(new Error('no store')),
      [5],
    );
    retrySchedules.begin('pay_1', 'm_1');
    await clock.advance(6);
    expect(failed).toHaveLength(2);
    retrySchedules.stop();
    expect(failed[0]).toMatchObject({ attempts: 1, error: new Error('no store') });
  });

  test('the provider is back: each is asked about at once, 8 at a time, and no more than once a minute', async () => {
    const tried: string[] = [];
    let isAway = true;
    let [running, most] = [0, 0];
    const { failed, clock, retrySchedules } = retrySchedulesOver(
      async (id) => {
        tried.push(id);
        most = Math.max(most, ++running);
        await new Promise((resolve) => setImmediate(resolve));
        running -= 1;
        return isAway ? { kind: 'unresolved', known: {} } : { kind: 'resolved' };
      },
      [600_000],
    );
    const ids = Array.from({ length: 30 }, (_, n) => `pay_${n}`);
    for (const id of ids) retrySchedules.begin(id, `m_${id}`);
    await until('each was asked about', () => failed.length === 30);
    retrySchedules.attemptAll();
    await until('each was asked about again', () => failed.length === 60);
    retrySchedules.attemptAll();
    expect(retrySchedules.all.get('pay_1')?.nextAttemptAtMs).toBeDefined();
    isAway = false;
    await clock.advance(60_000);
    retrySchedules.attemptAll();
    await until('none is left', () => retrySchedules.all.size === 0);
    expect([tried.slice(30, 60), tried.length, most]).toEqual([ids, 90, 8]);
  });
});
