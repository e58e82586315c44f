/**
 * Long reads in a thread of their own, so that no request waits for them on the event loop (ADR-0185).
 * Several scans take turns in one thread (scan-worker.ts), each over its own port.
 */
import { on } from 'node:events';
import { MessageChannel, Worker } from 'node:worker_threads';
import {
  errorFrom,
  type Failure,
  type FromThread,
  failureOf,
  type ScanOrder,
  type ToThread,
} from './scan.ts';

/** How many values a scan may be ahead of its reader: enough that it does not wait for a busy event loop. */
export const AHEAD = 4;
const IDLE_MS = 60_000;
/**
 * A scan that takes more memory ends its thread, and nothing else. Little of a page outlives the page:
 * with half as much for the young generation a verification takes 1.7 times the CPU.
 */
const MEMORY = { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 32 };

/** `ended` resolves, with the reason, when the thread is gone. */
type Started = { worker: Worker; ended: Promise<string> };

const start = (priorityLoweredBy: number): Started => {
  // Flags of this process, such as --input-type, are about its own main module.
  const worker = new Worker(new URL('./scan-worker.ts', import.meta.url), {
    execArgv: [],
    resourceLimits: MEMORY,
    workerData: { priorityLoweredBy },
  });
  const ended = new Promise<string>((resolve) => {
    worker.on('error', (error) => resolve(`the thread of this scan failed: ${String(error)}`));
    worker.on('exit', () => resolve('the thread of this scan ended'));
  });
  return { worker, ended };
};

/**
 * Makes a thread for scans: it starts with the first of them and ends when there was none for a while. With
 * `priorityLoweredBy` above 0 requests have the CPU before it: of a CPU that they fill, 10 leaves it a tenth,
 * 15 a thirtieth (low-priority.ts).
 */
export const createScanThread = ({ priorityLoweredBy = 0 } = {}) => {
  let started: Started | undefined;
  let idle: NodeJS.Timeout | undefined;
  let underWay = 0;

  /** A scan under way throws. The next scan starts another thread. */
  const end = async (): Promise<void> => {
    clearTimeout(idle);
    const last = started;
    started = undefined;
    await last?.worker.terminate();
  };

  const running = (): Started => {
    if (started !== undefined) return started;
    const one = start(priorityLoweredBy);
    started = one;
    void one.ended.then(() => {
      if (started === one) started = undefined;
    });
    return one;
  };

  /**
   * What the scan yields, and its result. Throws what the scan throws, as an Error with the same name,
   * message and fields, and an Error named ScanThreadEnded where the thread is gone.
   */
  async function* run<Y, R>({ calls = {}, signal, ...order }: ScanOrder): AsyncGenerator<Y, R> {
    clearTimeout(idle);
    underWay += 1;
    const { worker, ended } = running();
    const { port1: port, port2 } = new MessageChannel();
    const messages = on(port, 'message', { close: ['close'] }) as AsyncIterable<[FromThread]>;
    const post = (message: ToThread): void => port.postMessage(message);
    const stop = (): void => post('stop');

    const reply = async ({ call, name, args }: { call: number; name: string; args: unknown[] }) => {
      try {
        post({ call, value: await calls[name]?.(...(args as never[])) });
      } catch (error) {
        post({ call, failure: failureOf(error) });
      }
    };

    worker.ref();
    worker.postMessage({ ...order, port: port2 }, [port2]);
    for (let ahead = 0; ahead < AHEAD; ahead += 1) post('next');
    signal?.addEventListener('abort', stop);
    if (signal?.aborted) stop();
    try {
      for await (const [message] of messages) {
        if ('call' in message) void reply(message);
        else if ('failure' in message) throw errorFrom(message.failure);
        else if ('result' in message) return message.result as R;
        else {
          yield message.value as Y;
          post('next');
        }
      }
      const gone: Failure = { name: 'ScanThreadEnded', message: await ended };
      throw errorFrom(gone);
    } finally {
      signal?.removeEventListener('abort', stop);
      port.close();
      underWay -= 1;
      if (underWay === 0) {
        started?.worker.unref();
        idle = setTimeout(() => void end(), IDLE_MS).unref();
      }
    }
  }

  return { run, end };
};

export type ScanThread = ReturnType<typeof createScanThread>;
