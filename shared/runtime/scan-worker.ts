import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import {
  errorFrom,
  type FromThread,
  failureOf,
  type ScanOrder,
  stepsOf,
  type ToThread,
} from './scan.ts';
import { takeLowPriority } from './scheduling.ts';

type Begin = Pick<ScanOrder, 'module' | 'job' | 'args'> & { port: MessagePort };

const begin = ({ port, args, ...job }: Begin): void => {
  const stopping = new AbortController();
  const leaving = new AbortController();
  const calls = new Map<number, PromiseWithResolvers<unknown>>();
  let called = 0;
  const post = (message: FromThread): void => port.postMessage(message);

  const call = async (name: string, ...values: unknown[]): Promise<unknown> => {
    leaving.signal.throwIfAborted();
    called += 1;
    const pending = Promise.withResolvers<unknown>();
    calls.set(called, pending);
    post({ call: called, name, args: values });
    return pending.promise;
  };
  const steps = stepsOf(job, args, { signal: stopping.signal, call });

  const next = async (): Promise<void> => {
    try {
      const { done, value } = await steps.next();
      post(done ? { result: value } : { value });
    } catch (error) {
      post({ failure: failureOf(error) });
    }
  };

  const take = (message: ToThread): void => {
    if (message === 'next') void next();
    else if (message === 'stop') stopping.abort();
    else {
      const pending = calls.get(message.call);
      calls.delete(message.call);
      if ('failure' in message) pending?.reject(errorFrom(message.failure));
      else pending?.resolve(message.value);
    }
  };

  // The reader has left: the scan lets go of its resources.
  const leave = (): void => {
    stopping.abort();
    leaving.abort();
    for (const { reject } of calls.values()) reject(leaving.signal.reason);
    steps.return(undefined).catch(() => undefined);
  };

  port.on('message', take);
  port.on('close', leave);
};

if (workerData.priorityLoweredBy > 0) takeLowPriority(workerData.priorityLoweredBy);
parentPort?.on('message', begin);
