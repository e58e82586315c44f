/** The thread that runs scans, each taking its turn at its own pauses (scan-thread.ts). */
import { parentPort, workerData } from 'node:worker_threads';
import { takeLowPriority } from './low-priority.ts';
import { type Scan, type ScanTools, stepsOf } from './scan.ts';
import { errorFrom, type FromThread, failureOf, type ToThread } from './scan-messages.ts';

const port = parentPort;
if (port === null) throw new Error('scan-worker.ts runs as a worker thread only');
const post = (message: FromThread): void => port.postMessage(message);

type PendingCall = PromiseWithResolvers<unknown>;
/** A scan under way: how many values it may still make, and what waits for more to be allowed. */
type Running = { ahead: number; stopping: AbortController; wake(): void };

const running = new Map<number, Running>();
const calls = new Map<number, PendingCall>();
let called = 0;

const toolsOf = (scan: number, signal: AbortSignal): ScanTools => ({
  signal,
  call: (name, ...args) => {
    called += 1;
    const pending = Promise.withResolvers<unknown>();
    calls.set(called, pending);
    post({ scan, call: called, name, args });
    return pending.promise;
  },
});

/** Resolves when the scan may make another value; one that is to stop may, and ends by its signal. */
const allowed = async (one: Running): Promise<void> => {
  while (one.ahead <= 0 && !one.stopping.signal.aborted) {
    await new Promise<void>((resolve) => {
      one.wake = resolve;
    });
  }
};

const run = async (scan: number, one: Running, module: string, args: unknown): Promise<void> => {
  try {
    const code: { scan: Scan<unknown, unknown, unknown> } = await import(module);
    const steps = stepsOf(code.scan(args, toolsOf(scan, one.stopping.signal)));
    for (let step = await steps.next(); ; step = await steps.next()) {
      if (step.done) return post({ scan, result: step.value });
      post({ scan, value: step.value });
      one.ahead -= 1;
      await allowed(one);
    }
  } catch (error) {
    post({ scan, failure: failureOf(error) });
  } finally {
    running.delete(scan);
  }
};

const take = (message: ToThread): void => {
  const { scan } = message;
  if ('module' in message) {
    const stopping = new AbortController();
    const one = { ahead: message.ahead, stopping, wake: () => undefined };
    running.set(scan, one);
    void run(scan, one, message.module, message.args);
  } else if ('call' in message) {
    const pending = calls.get(message.call);
    calls.delete(message.call);
    if ('failure' in message) pending?.reject(errorFrom(message.failure));
    else pending?.resolve(message.value);
  } else {
    const one = running.get(scan);
    if ('stop' in message) one?.stopping.abort();
    else if (one !== undefined) one.ahead += 1;
    one?.wake();
  }
};

if (workerData.priorityLoweredBy > 0) takeLowPriority(workerData.priorityLoweredBy);
port.on('message', take);
