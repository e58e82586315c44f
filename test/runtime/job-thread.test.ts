/** ADR-0185: jobs take turns in a thread, wait for their reader, and fail alone. */
import { getPriority } from 'node:os';
import { afterAll, expect, test } from '@jest/globals';
import { AHEAD, resultOf } from '../../shared/runtime/jobs.ts';
import { count, newTestThread, type TestJob } from '../support/jobs.ts';
import { until } from '../support/until.ts';

const thread = newTestThread();
afterAll(thread.end);

const pending = () => new Promise<never>(() => undefined);
const calls = { note: pending, double: pending, hang: pending };
const run = (args: TestJob, signal?: AbortSignal) => thread.run(count, args, { calls, signal });

test('values come in order, and the result after them', async () => {
  const values: number[] = [];
  expect(await resultOf(run({ count: 20 }), (value) => values.push(value))).toBe(20);
  expect(values).toEqual(Array.from({ length: 20 }, (_, n) => n));
});

test('a job calls what its order lists, and gets the error of a call that fails', async () => {
  const calling = (double: (n: number) => Promise<unknown>) =>
    resultOf(thread.run(count, { count: 3, ending: 'call' }, { calls: { ...calls, double } }));
  expect(await calling(async (n) => 2 * n)).toBe(6);
  const away = Object.assign(new Error('out of reach'), { code: 'E_AWAY' });
  await expect(calling(() => Promise.reject(away))).rejects.toMatchObject({
    message: 'out of reach',
    code: 'E_AWAY',
  });
});

test('an error keeps its name, its message and its code', async () => {
  await expect(resultOf(run({ count: 2, ending: 'throw' }))).rejects.toMatchObject({
    name: 'RangeError',
    message: 'no such place',
    code: 'E_PLACE',
  });
});

test('a job that is stopped ends by its signal, and one that its reader left does no more', async () => {
  const stopping = new AbortController();
  const waiting = resultOf(run({ count: 0, ending: 'wait' }, stopping.signal));
  stopping.abort();
  expect(await waiting).toBe('stopped at 0');
  const left = run({ count: 1_000_000 });
  expect(await left.next()).toEqual({ done: false, value: 0 });
  await left.return(undefined);
  expect(await resultOf(run({ count: 1 }))).toBe(1);
});

test('a job whose reader has left ends once the call that it waits for has', async () => {
  const { promise: hung, resolve: release } = Promise.withResolvers<void>();
  const own = { calls: { ...calls, hang: () => hung } };
  const left = thread.run(count, { count: 1, ending: 'hang' }, own);
  await left.next();
  await left.return(undefined);
  release();
  await until('it has ended', async () => {
    return (await resultOf(run({ count: 0, ending: 'ended' }))) === 1;
  });
});

test('a job gets no further ahead than its reader takes', async () => {
  const made: number[] = [];
  const note = async (n: number) => void made.push(n);
  const noting = (values: number, own: (n: number) => Promise<unknown>) =>
    thread.run(count, { count: values, ending: 'note' }, { calls: { ...calls, note: own } });
  const steps = noting(100, note);
  await steps.next();
  // Other jobs go on meanwhile.
  await resultOf(noting(50, async () => null));
  expect(made.length).toBeLessThanOrEqual(AHEAD);
  await steps.return(undefined);
});

test.each<[when: string, args: TestJob, taken: number]>([
  ['as a job begins', { count: 0, ending: 'wait' }, 0],
  ['between two values', { count: 100 }, 1],
  ['after the last value', { count: 2, ending: 'wait' }, 2],
  ['while a job waits for a call', { count: 2, ending: 'hang' }, 2],
  ['by itself', { count: 2, ending: 'die' }, 0],
])(
  'a thread that dies %s fails its jobs and no other: the next one has a new thread',
  async (_, args, taken) => {
    const steps = run(args);
    for (let n = 0; n < taken; n += 1) await steps.next();
    const both = [steps, run({ count: 0, ending: 'wait' })].map(async (job) =>
      expect(resultOf(job)).rejects.toMatchObject({ name: 'ThreadEnded' }),
    );
    if (args.ending !== 'die') await thread.end();
    await Promise.all(both);
    expect(await resultOf(run({ count: 4 }))).toBe(4);
  },
);

const onLinux = process.platform === 'linux' ? test : test.skip;
onLinux('a thread in the background has a lower priority than those of requests', async () => {
  const behind = newTestThread(10);
  const args: TestJob = { count: 0, ending: 'priority' };
  // 19 is the last one that there is.
  const lowered = Math.min(getPriority() + 10, 19);
  expect(await resultOf(behind.run(count, args, { calls }))).toBe(lowered);
  expect(await resultOf(run(args))).toBe(getPriority());
  await behind.end();
});
