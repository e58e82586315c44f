/**
 * Jobs in threads, so that no request waits for them (ADR-0185), and the one protocol with a thread: a job
 * begins under an id; its values come, at most AHEAD before its reader takes them; then its result, or its
 * failure. The reader can stop it, or leave.
 */
import { EventEmitter, on } from 'node:events';
import { type ResourceLimits, Worker } from 'node:worker_threads';
import type { Logger } from './log.ts';

/** A job may be so many values ahead, so that it does not wait for a busy event loop. */
export const AHEAD = 4;
const IDLE_MS = 60_000;
/** Half the young generation would make a verification take 1.7 times the CPU. */
const MEMORY = { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 32 };

export type JobTools<C> = {
  /** Aborted when the reader wants no more: the job ends at its next step. */
  signal: AbortSignal;
  /** Functions of the reader's thread, which carries them out while it reads on. Each throws its error. */
  calls: C;
};

export type Steps<Y, R> = AsyncGenerator<Y, R> | Promise<R>;

/** `args`, values and result are plain data, because threads copy them. */
export type Job<A, Y, R, C = object> = (args: A, tools: JobTools<C>) => Steps<Y, R>;

export type JobGiven<C> = { signal?: AbortSignal | undefined; calls: C };

/** Runs a job. Throws its error: from a thread with its name, message and plain fields; or ThreadEnded. */
export type RunJob = <A, Y, R, C extends object>(
  job: Job<A, Y, R, C>,
  args: A,
  given: JobGiven<C>,
) => AsyncGenerator<Y, R>;

export type JobThread = {
  run: RunJob;
  /** A job under way throws; the next one starts another thread. */
  end(): Promise<void>;
};

/** Under full load 10 leaves the thread a tenth of the CPU, 15 a thirtieth. */
export type NewThread = (priorityLoweredBy?: number) => JobThread;

export async function* stepsOf<Y, R>(made: Steps<Y, R>): AsyncGenerator<Y, R> {
  return made instanceof Promise ? await made : yield* made;
}

/** In the calling thread. */
export const runHere: RunJob = (job, args, { signal = new AbortController().signal, calls }) =>
  stepsOf(job(args, { signal, calls }));

/** For a process without jobs of its own. */
export const newThreadHere: NewThread = () => ({ run: runHere, end: async () => undefined });

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

/** The lines of a job are written by the process that runs it. */
export const logCalls = (logger: Logger) => ({
  log: async (level: keyof Logger, fields: object, message: string) =>
    logger[level](fields, message),
});
export type LogCalls = ReturnType<typeof logCalls>;
export const logOver = ({ log }: LogCalls): Logger => {
  const lineOf = (level: keyof Logger) => (fields: object, message: string) =>
    void log(level, fields, message).catch(() => undefined);
  return { info: lineOf('info'), warn: lineOf('warn'), error: lineOf('error') };
};

/** An error as threads copy it: of a class only its name stays. */
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

export type Begin = { id: number; job: string; args: unknown; calls?: string[] };
export type Ended = { result: unknown } | { failure: Failure };
/** Id 0: a failure of the thread itself. */
type FromThread = { id: number } & (
  | { value: unknown }
  | { call: string; args: unknown[]; reply: number }
  | Ended
);
export type ToThread = Begin | { id: number; say: 'next' | 'stop' | 'leave' } | (ReplyTo & Ended);
type ReplyTo = { id: number; reply: number };

export type Functions = Record<string, (...args: never[]) => unknown>;

type ThreadOptions = {
  name: string;
  workerData: object;
  memory?: ResourceLimits;
  /** Called with what it reports, and with ThreadEnded once it has ended. */
  onFailure(error: Error): void;
};

/** Starts a thread; `H` are the functions that it serves by `serveCalls`. */
export const startThread = <H extends Functions>(module: URL, options: ThreadOptions) => {
  const { name, memory = MEMORY, onFailure } = options;
  // Flags of this process, such as --input-type, are about its main module.
  const own = { workerData: options.workerData, execArgv: [], resourceLimits: memory };
  const worker = new Worker(module, own);
  const readers = new Map<number, (message: FromThread) => void>();
  let gone: Failure | undefined;
  let begun = 0;

  const ended = (message: string): void => {
    if (gone !== undefined) return;
    gone = { name: 'ThreadEnded', message };
    for (const [id, read] of readers) read({ id, failure: gone });
    onFailure(errorFrom(gone));
  };
  // Under `node --watch` Node posts the names of files that the thread has read.
  worker.on('message', (message: FromThread) => readers.get(message.id)?.(message));
  worker.on('error', (error) => ended(`${name} failed: ${String(error)}`));
  worker.on('exit', () => ended(`${name} ended`));
  readers.set(0, (message) => 'failure' in message && onFailure(errorFrom(message.failure)));

  const begin = (order: Omit<Begin, 'id'>, read: (message: FromThread) => void): number => {
    begun += 1;
    const id = begun;
    readers.set(id, read);
    worker.ref();
    if (gone === undefined) worker.postMessage({ id, ...order });
    else read({ id, failure: gone });
    return id;
  };
  const leave = (id: number): void => {
    readers.delete(id);
    if (readers.size === 1) worker.unref();
  };

  const call = <N extends keyof H & string>(job: N, ...args: Parameters<H[N]>) =>
    new Promise<ReturnType<H[N]>>((resolve, reject) => {
      begin({ job, args }, (message) => {
        leave(message.id);
        if ('failure' in message) reject(errorFrom(message.failure));
        else if ('result' in message) resolve(message.result as ReturnType<H[N]>);
      });
    });

  async function* run<Y, R>(job: string, args: unknown, { signal, calls }: JobGiven<object>) {
    const received = new EventEmitter();
    const messages = on(received, 'message') as AsyncIterable<[FromThread]>;
    const order = { job, args, calls: Object.keys(calls) };
    const id = begin(order, (message) => void received.emit('message', message));
    const say = (word: 'next' | 'stop' | 'leave') => worker.postMessage({ id, say: word });
    const stop = (): void => say('stop');
    const carryOut = async (name: string, values: unknown[], reply: number): Promise<void> => {
      const work = (calls as Functions)[name] as (...given: unknown[]) => unknown;
      const outcome = await outcomeOf(() => work(...values));
      worker.postMessage({ id, reply, ...outcome });
    };
    signal?.addEventListener('abort', stop);
    if (signal?.aborted) stop();
    try {
      for await (const [message] of messages) {
        if ('call' in message) void carryOut(message.call, message.args, message.reply);
        else if ('failure' in message) throw errorFrom(message.failure);
        else if ('result' in message) return message.result as R;
        else {
          yield message.value as Y;
          say('next');
        }
      }
      throw new Error('a job has a result or a failure');
    } finally {
      signal?.removeEventListener('abort', stop);
      say('leave');
      leave(id);
    }
  }

  return { call, run, end: async (): Promise<void> => void (await worker.terminate()) };
};

export const outcomeOf = async (work: () => unknown): Promise<Ended> => {
  try {
    return { result: await work() };
  } catch (error) {
    return { failure: failureOf(error) };
  }
};

/** A thread for jobs that `module` serves by `serveJobs`; it starts with the first, and ends when idle. */
export const createJobThread = (module: URL, priorityLoweredBy = 0): JobThread => {
  type Started = ReturnType<typeof startThread>;
  let started: Started | undefined;
  let idle: NodeJS.Timeout | undefined;
  let underWay = 0;

  const end = async (): Promise<void> => {
    clearTimeout(idle);
    const last = started;
    started = undefined;
    await last?.end();
  };

  const start = (): Started => {
    const onFailure = (): void => {
      if (started === one) started = undefined;
    };
    const own = { name: 'the thread of this job', workerData: { priorityLoweredBy }, onFailure };
    const one = startThread(module, own);
    return one;
  };

  return {
    run: async function* (job, args, given) {
      clearTimeout(idle);
      underWay += 1;
      started ??= start();
      try {
        return yield* started.run(job.name, args, given);
      } finally {
        underWay -= 1;
        if (underWay === 0) idle = setTimeout(() => void end(), IDLE_MS).unref();
      }
    },
    end,
  };
};
