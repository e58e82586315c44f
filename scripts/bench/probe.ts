/**
 * Loaded by `--import` into each server of the bench, also into those that are not ours. Sends a
 * Usage to the parent for each message that it gets, and begins anew.
 */
import { monitorEventLoopDelay, PerformanceObserver } from 'node:perf_hooks';
import { isMainThread } from 'node:worker_threads';

/** What a server's process used since the message before: all threads, but for loop and pauses. */
export type Usage = {
  /** CPU of the whole process. */
  cpuUs: number;
  rssBytes: number;
  /** Pauses of the event loop's garbage collector: their sum, and the longest. */
  gcMs: number;
  gcMaxMs: number;
  /** How late the event loop ran its timers, beyond the resolution of the measurement. */
  delayP99Ms: number;
  delayMaxMs: number;
};

const RESOLUTION_MS = 5;

const begin = (): void => {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();
  const gc = { sum: 0, max: 0 };
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) {
      gc.sum += duration;
      gc.max = Math.max(gc.max, duration);
    }
  }).observe({ entryTypes: ['gc'] });
  let since = process.cpuUsage();
  const late = (ns: number): number => Math.max(ns / 1e6 - RESOLUTION_MS, 0);
  process.on('message', () => {
    const cpu = process.cpuUsage(since);
    const usage: Usage = {
      cpuUs: cpu.user + cpu.system,
      rssBytes: process.memoryUsage.rss(),
      gcMs: gc.sum,
      gcMaxMs: gc.max,
      delayP99Ms: late(delay.percentile(99)),
      delayMaxMs: late(delay.max),
    };
    process.send?.(usage);
    since = process.cpuUsage();
    gc.sum = 0;
    gc.max = 0;
    delay.reset();
  });
  // The server must be able to end while its parent lives.
  process.channel?.unref();
};

if (isMainThread && process.channel) begin();
