import { until } from './until.ts';

/**
 * Does some work until its share of the CPU time in this thread is less than a third. Garbage of other tests and
 * code that is compiled come on top at times; work of the event loop itself would have all of it every time.
 */
export const untilBesideTheLoop = (work: () => Promise<unknown>): Promise<void> =>
  until('it takes next to nothing of the event loop', async () => {
    const [own, all] = [process.threadCpuUsage(), process.cpuUsage()];
    await work();
    return process.threadCpuUsage(own).user < process.cpuUsage(all).user / 3;
  });
