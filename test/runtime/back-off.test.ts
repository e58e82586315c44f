/** Waits between two attempts, and time limits: their bounds, and what becomes of work that is late. */
import { expect, test } from '@jest/globals';
import { backOffMs, jittered, pause, WIDE_JITTER, within } from '../../shared/runtime/back-off.ts';

const late = () => new Error('late');
const SAMPLES = 200;
const many = (one: () => number): number[] => Array.from({ length: SAMPLES }, one);

test('V4: a back-off doubles up to its bound, and half of it is random', () => {
  const backOff = { minMs: 100, maxMs: 5000 };
  for (const [failures, fullMs] of [
    [0, 100],
    [1, 200],
    [5, 3200],
    [6, 5000],
    [2000, 5000],
  ] as const) {
    const waits = many(() => backOffMs(backOff, failures));
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(fullMs / 2);
    expect(Math.max(...waits)).toBeLessThanOrEqual(fullMs);
    expect(new Set(waits).size).toBeGreaterThan(10);
  }
});

test('a jittered wait stays within its factors', () => {
  const waits = many(() => jittered(1000, WIDE_JITTER));
  expect(Math.min(...waits)).toBeGreaterThanOrEqual(500);
  expect(Math.max(...waits)).toBeLessThanOrEqual(1500);
});

test('a pause ends with its signal, and never rejects', async () => {
  const stopping = new AbortController();
  const paused = pause(60_000, stopping.signal);
  stopping.abort();
  await expect(paused).resolves.toBeUndefined();
  await expect(pause(60_000, stopping.signal)).resolves.toBeUndefined();
  await expect(pause(1)).resolves.toBeUndefined();
});

test('work that ends within its limit gives its own value or error', async () => {
  await expect(within(1000, Promise.resolve(7), late)).resolves.toBe(7);
  await expect(within(1000, Promise.reject(new Error('its own')), late)).rejects.toThrow('its own');
});

test('work that is late rejects with the error of the limit, and its own later error is ignored', async () => {
  const work = Promise.withResolvers<never>();
  await expect(within(1, work.promise, late)).rejects.toThrow('late');
  work.reject(new Error('too late to matter'));
  // An unhandled rejection is reported once the microtasks are done, and fails this test.
  await new Promise(setImmediate);
});

test('an aborted signal ends the wait with its reason', async () => {
  const never = new Promise<never>(() => undefined);
  const dropped = new AbortController();
  const waiting = within(60_000, never, late, dropped.signal);
  dropped.abort(new Error('dropped'));
  await expect(waiting).rejects.toThrow('dropped');
  await expect(within(60_000, never, late, dropped.signal)).rejects.toThrow('dropped');
});
