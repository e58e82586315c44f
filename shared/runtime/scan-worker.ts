import { once } from 'node:events';
import { MessageChannel, type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { errorFrom, type FromThread, failureOf, type ScanOrder, stepsOf } from './scan.ts';
import { takeLowPriority } from './scheduling.ts';

type Begin = Pick<ScanOrder, 'module' | 'job' | 'args'> & { port: MessagePort };

const begin = ({ port, args, ...job }: Begin): void => {
  const stopping = new AbortController();
  const leaving = new AbortController();
  const post = (message: FromThread, ...ports: MessagePort[]) => port.postMessage(message, ports);

  const call = async (name: string, ...values: unknown[]): Promise<unknown> => {
    leaving.signal.throwIfAborted();
    const { port1, port2 } = new MessageChannel();
    try {
      post({ call: name, args: values, reply: port2 }, port2);
      const [reply] = await once(port1, 'message', { signal: leaving.signal });
      if ('failure' in reply) throw errorFrom(reply.failure);
      return reply.value;
    } finally {
      port1.close();
    }
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

  // The reader has left: the scan lets go of its resources.
  const leave = (): void => {
    stopping.abort();
    leaving.abort();
    steps.return(undefined).catch(() => undefined);
  };

  port.on('message', (message) => (message === 'next' ? void next() : stopping.abort()));
  port.on('close', leave);
};

if (workerData.priorityLoweredBy > 0) takeLowPriority(workerData.priorityLoweredBy);
parentPort?.on('message', begin);
