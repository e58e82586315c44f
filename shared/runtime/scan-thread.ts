/**
 * Long reads in a thread of their own, so that no request waits for them on the event loop. Several scans
 * take turns in one thread (scan-worker.ts), and none gets further ahead than its reader takes. The
 * thread starts with the first scan and ends when there was none for a while.
 */
import { Worker } from 'node:worker_threads';
import type { ScanOrder } from './scan.ts';
import { AHEAD, errorFrom, type Failure, type FromThread, failureOf } from './scan-messages.ts';

/** A thread for scans. */
export type ScanThread = {
  /**
   * What the scan yields, and its result. Throws what the scan throws, as an Error with the same name,
   * message and fields, and an Error named ScanThreadEnded where the thread is gone.
   */
  run<Y, R>(order: ScanOrder): AsyncGenerator<Y, R>;
  /** Ends the thread; a scan under way throws. The next scan starts another thread. */
  end(): Promise<void>;
};

const IDLE_MS = 60_000;
/**
 * A scan that takes more memory ends its thread, and nothing else. Of a page hardly anything lives longer
 * than the page: with half as much for the young generation a verification takes 1.7 times the CPU, with V8's
 * own size 100 MB more and no less CPU.
 */
const MEMORY = { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 32 };

const gone = (message: string): Failure => ({ name: 'ScanThreadEnded', message, fields: {} });

/**
 * How a thread is made. `priorityLoweredBy` is above 0 where requests have the CPU before it: of a CPU that
 * they fill, 10 leaves it a tenth, 15 a thirtieth (low-priority.ts).
 */
type ScanThreadOptions = { priorityLoweredBy?: number };

/** Makes a thread for scans, which starts with the first of them. */
export const createScanThread = ({ priorityLoweredBy = 0 }: ScanThreadOptions = {}): ScanThread => {
  let worker: Worker | undefined;
  let idle: NodeJS.Timeout | undefined;
  let ordered = 0;
  const running = new Map<number, (message: FromThread) => void>();

  const ended = (one: Worker, why: string): void => {
    if (worker !== one) return;
    worker = undefined;
    for (const take of running.values()) take({ scan: 0, failure: gone(why) });
  };

  const start = (): Worker => {
    // Flags of this process, such as --input-type, are about its own main module.
    const one = new Worker(new URL('./scan-worker.ts', import.meta.url), {
      execArgv: [],
      resourceLimits: MEMORY,
      workerData: { priorityLoweredBy },
    });
    // Under `node --watch` Node itself posts the names of the files that the thread has read.
    one.on('message', (message: FromThread | object) => {
      if ('scan' in message) running.get(message.scan)?.(message);
    });
    one.on('error', (error) => ended(one, `the thread of this scan failed: ${String(error)}`));
    one.on('exit', () => ended(one, 'the thread of this scan ended'));
    return one;
  };

  const end = async (): Promise<void> => {
    clearTimeout(idle);
    const one = worker;
    if (one === undefined) return;
    ended(one, 'the thread of this scan was ended');
    await one.terminate();
  };

  async function* run<Y, R>({ module, args, calls = {}, signal }: ScanOrder): AsyncGenerator<Y, R> {
    ordered += 1;
    const scan = ordered;
    const received: FromThread[] = [];
    let wake = (): void => undefined;
    clearTimeout(idle);
    worker ??= start();
    const thread = worker;
    const post = (message: object): void => thread.postMessage({ scan, ...message });
    const stop = (): void => post({ stop: true });

    const reply = async (call: number, name: string, values: unknown[]): Promise<void> => {
      try {
        post({ call, value: await calls[name]?.(...(values as never[])) });
      } catch (error) {
        post({ call, failure: failureOf(error) });
      }
    };
    running.set(scan, (message) => {
      if ('call' in message) return void reply(message.call, message.name, message.args);
      received.push(message);
      wake();
    });
    thread.ref();
    post({ module, args, ahead: AHEAD });
    signal?.addEventListener('abort', stop);
    if (signal?.aborted) stop();
    try {
      for (;;) {
        const message = received.shift();
        if (message === undefined) {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        } else if ('value' in message) {
          yield message.value as Y;
          post({ more: true });
        } else if ('failure' in message) throw errorFrom(message.failure);
        else if ('result' in message) return message.result as R;
      }
    } finally {
      signal?.removeEventListener('abort', stop);
      stop();
      running.delete(scan);
      if (running.size === 0) {
        thread.unref();
        idle = setTimeout(() => void end(), IDLE_MS).unref();
      }
    }
  }

  return { run, end };
};

const unused = new Map<number, ScanThread[]>();

/**
 * Runs a step with a thread of the given priority (ScanThreadOptions) that no other step has meanwhile. The
 * thread is there for later steps, until there was none for a while. A step whose scan
 * may still run ends the thread.
 */
export const withScanThread = async <T>(
  priorityLoweredBy: number,
  step: (thread: ScanThread) => Promise<T>,
): Promise<T> => {
  const left = unused.get(priorityLoweredBy) ?? [];
  unused.set(priorityLoweredBy, left);
  const thread = left.pop() ?? createScanThread({ priorityLoweredBy });
  try {
    return await step(thread);
  } finally {
    left.push(thread);
  }
};
