/** The jobs of tests of the thread, and the module that it starts with. */
import { readlinkSync } from 'node:fs';
import { getPriority } from 'node:os';
import { basename } from 'node:path';
import { createJobThread, type Job, type NewThread, serveJobs } from '../../shared/runtime/jobs.ts';

export type TestJob = {
  count: number;
  ending?: 'note' | 'call' | 'throw' | 'die' | 'wait' | 'priority' | 'hang' | 'ended';
};

type TestCalls = Record<'note' | 'double' | 'hang', (n: number) => Promise<unknown>>;

/** How many jobs that hung have ended. */
let ended = 0;

/** Counts, and notes each number where it is to; then it returns what it called, its thread's priority or `ended`, throws, ends its thread, calls in vain, or waits until it is to stop. */
export const count: Job<TestJob, number, unknown, TestCalls> = async function* (
  { count, ending },
  { signal, calls },
) {
  let n = 0;
  for (; n < count && !signal.aborted; n += 1) {
    if (ending === 'note') await calls.note(n);
    yield n;
  }
  if (ending === 'call') return calls.double(n);
  if (ending === 'priority')
    return getPriority(Number(basename(readlinkSync('/proc/thread-self'))));
  if (ending === 'ended') return ended;
  if (ending === 'hang') await calls.hang(n).finally(() => (ended += 1));
  if (ending === 'throw') throw Object.assign(new RangeError('no such place'), { code: 'E_PLACE' });
  if (ending === 'die') process.exit(3);
  if (ending === 'wait' && !signal.aborted) {
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
  }
  return signal.aborted ? `stopped at ${n}` : n;
};

export const newTestThread: NewThread = (priorityLoweredBy) =>
  createJobThread(new URL(import.meta.url), priorityLoweredBy);

serveJobs({ count: async () => count });
