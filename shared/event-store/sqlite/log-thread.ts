/** The threads in which scans of the log run (log-scan.ts), for all files of this process. */
import { pathToFileURL } from 'node:url';
import type { ScanOrder } from '../../runtime/scan.ts';
import { createScanThread, type ScanThread } from '../../runtime/scan-thread.ts';
import type { LogScanArgs } from './log-scan.ts';

const MODULE = new URL('./log-scan.ts', import.meta.url).href;

/** No request waits for a scan of the log. */
const LOWERED_BY = 10;

const threads: ScanThread[] = [];
const threadAt = (index: number): ScanThread => {
  threads[index] ??= createScanThread({ priorityLoweredBy: LOWERED_BY });
  return threads[index];
};

/** The address by which the thread opens a file that this process writes. */
export const liveAddress = (file: string): string => `${pathToFileURL(file).href}?mode=ro`;

/**
 * Scans of one file (`StoredForms.scan`). `file` is what SQLite opens: an address, or the path of a copy.
 * `close` resolves when none of them has the file open any more; one under way throws.
 */
export const logScans = (file: string, isLive: boolean) => {
  let unfinished = 0;

  async function* scan<Y, R>(
    { module, args, ...order }: ScanOrder,
    thread = 0,
  ): AsyncGenerator<Y, R> {
    const given: LogScanArgs = { file, isLive, module, args };
    let finished = true;
    unfinished += 1;
    const steps = threadAt(thread).run<Y, R>({ ...order, module: MODULE, args: given });
    try {
      for (let step = await steps.next(); ; step = await steps.next()) {
        if (step.done === true) return step.value;
        finished = false;
        yield step.value;
        finished = true;
      }
    } finally {
      // A reader that has left does not see the end of the scan in its thread.
      await steps.return(undefined as R);
      if (finished) unfinished -= 1;
    }
  }

  return {
    scan,
    close: async (): Promise<void> => {
      if (unfinished > 0) await Promise.all(threads.map((one) => one.end()));
    },
  };
};
