/** A scan for tests of the thread: what it does, its arguments say. */
import { readlinkSync } from 'node:fs';
import { getPriority } from 'node:os';
import { basename } from 'node:path';
import type { ScanTools } from '../../shared/runtime/scan.ts';

export type TestScan = {
  count: number;
  ending?: 'note' | 'call' | 'throw' | 'die' | 'wait' | 'priority' | 'hang' | 'ended';
};

/** How many scans that hung have ended. */
let ended = 0;

/** Counts, and notes each number where it is to; then it returns what it called, its thread's priority or `ended`, throws, ends its thread, calls in vain, or waits until it is to stop. */
export async function* scan({ count, ending }: TestScan, { signal, call }: ScanTools) {
  let n = 0;
  for (; n < count && !signal.aborted; n += 1) {
    if (ending === 'note') await call('note', n);
    yield n;
  }
  if (ending === 'call') return call('double', n);
  if (ending === 'priority')
    return getPriority(Number(basename(readlinkSync('/proc/thread-self'))));
  if (ending === 'ended') return ended;
  if (ending === 'hang') await call('hang').finally(() => (ended += 1));
  if (ending === 'throw') throw Object.assign(new RangeError('no such place'), { code: 'E_PLACE' });
  if (ending === 'die') process.exit(3);
  if (ending === 'wait' && !signal.aborted) {
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
  }
  return signal.aborted ? `stopped at ${n}` : n;
}
