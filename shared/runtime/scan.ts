/** Long reads in one thread, each over its own port; no request waits for them (ADR-0185). */
import { on } from 'node:events';
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads';
import type { Logger } from './log.ts';

/** A scan may be so many values ahead, so that it does not wait for a busy event loop. */
export const AHEAD = 4;
const IDLE_MS = 60_000;
/** Half the young generation would make a verification take 1.7 times the CPU. */
const MEMORY = { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 32 };

type Started = { worker: Worker; ended: Promise<string> };

const start = (priorityLoweredBy: number): Started => {
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

/** `priorityLoweredBy`: under full load 10 leaves the thread a tenth of the CPU, 15 a thirtieth. */
export const createScanThread = ({ priorityLoweredBy = 0 } = {}) => {
  let started: Started | undefined;
  let idle: NodeJS.Timeout | undefined;
  let underWay = 0;

  /** A scan under way throws; the next starts another thread. */
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

  /** Throws the scan's error with its name, message and fields, or ScanThreadEnded. */
  async function* run<Y, R>({ calls = {}, signal, ...order }: ScanOrder): AsyncGenerator<Y, R> {
    clearTimeout(idle);
    underWay += 1;
    const { worker, ended } = running();
    const { port1: port, port2 } = new MessageChannel();
    const messages = on(port, 'message', { close: ['close'] }) as AsyncIterable<[FromThread]>;
    const stop = (): void => port.postMessage('stop');

    const carryOut = async ({ call, args, reply }: CallOfScan): Promise<void> => {
      try {
        reply.postMessage({ value: await calls[call]?.(...(args as never[])) });
      } catch (error) {
        reply.postMessage({ failure: failureOf(error) });
      }
    };

    worker.ref();
    worker.postMessage({ ...order, port: port2 }, [port2]);
    for (let ahead = 0; ahead < AHEAD; ahead += 1) port.postMessage('next');
    signal?.addEventListener('abort', stop);
    if (signal?.aborted) stop();
    try {
      for await (const [message] of messages) {
        if ('call' in message) void carryOut(message);
        else if ('failure' in message) throw errorFrom(message.failure);
        else if ('result' in message) return message.result as R;
        else {
          yield message.value as Y;
          port.postMessage('next');
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

export type ScanTools = {
  /** The reader wants no more; the scan ends at its next step. */
  signal: AbortSignal;
  /** Calls a function of the order in its thread. Throws its error. */
  call(name: string, ...args: unknown[]): Promise<unknown>;
};

/** Plain data, because threads copy it. */
export type Scanned<Y, R> = AsyncGenerator<Y, R> | Promise<R>;

export type Scan<A, Y, R> = (args: A, tools: ScanTools) => Scanned<Y, R>;

type Job = {
  /** A module's address (`file:///…`), and the name of its scan. */
  module: string;
  job: string;
};

export type ScanOrder = Job & {
  args: unknown;
  /** For the scan; carried out while its reader reads on. */
  calls?: Record<string, (...args: never[]) => Promise<unknown>>;
  signal?: AbortSignal | undefined;
};

/** The lines of a scan are written by the process that ordered it: `log`, of its calls. */
export const logCalls = (logger: Logger) => ({
  log: async (level: keyof Logger, fields: object, message: string) =>
    logger[level](fields, message),
});
export const logOver = (call: ScanTools['call']): Logger => {
  const lineOf = (level: keyof Logger) => (fields: object, message: string) =>
    void call('log', level, fields, message).catch(() => undefined);
  return { info: lineOf('info'), warn: lineOf('warn'), error: lineOf('error') };
};

export async function* stepsOf<Y, R>(
  { module, job }: Job,
  ...given: unknown[]
): AsyncGenerator<Y, R> {
  const { [job]: scan } = await import(module);
  const made: Scanned<Y, R> = scan(...given);
  return made instanceof Promise ? await made : yield* made;
}

export const resultOf = async <Y, R>(
  steps: AsyncGenerator<Y, R>,
  onStep: (value: Y) => void = () => undefined,
): Promise<R> => {
  for (;;) {
    const { done, value } = await steps.next();
    if (done === true) return value;
    onStep(value);
  }
};

/** Of a class only its name stays. */
export type Failure = { name: string; message: string; [field: string]: unknown };

export const failureOf = (error: unknown): Failure => {
  // An error can be one of another realm.
  const { name = 'Error', message = String(error) } = Object(error);
  // Codes are plain; a field that cannot be posted would lose the error itself.
  const plain = Object.entries(Object(error)).filter(([, value]) => Object(value) !== value);
  return { ...Object.fromEntries(plain), name, message };
};

export const errorFrom = (failure: Failure): Error =>
  Object.assign(new Error(failure.message), failure);

/** Its `value` or `failure` is posted to `reply`. */
type CallOfScan = { call: string; args: unknown[]; reply: MessagePort };

/** The thread itself gets `next` for each value that its reader may take, and `stop`. */
export type FromThread =
  | { value: unknown }
  | { result: unknown }
  | { failure: Failure }
  | CallOfScan;
