/**
 * Jobs in threads, so that no request waits for them (ADR-0185). A job begins under an id, runs at most AHEAD
 * values before its reader, and ends with a result or a failure. A stopped job's calls go on until its end.
 */
import { EventEmitter, on } from 'node:events';
import { parentPort, type ResourceLimits, Worker, workerData } from 'node:worker_threads';
import type { Logger } from './log.ts';
import { takeLowPriority } from './scheduling.ts';

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

export type JobSteps<Y, R> = AsyncGenerator<Y, R> | Promise<R>;

/** `args`, values and result are plain data, because threads copy them. */
export type Job<A, Y, R, C = object> = (args: A, tools: JobTools<C>) => JobSteps<Y, R>;

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

export async function* stepsOf<Y, R>(made: JobSteps<Y, R>): AsyncGenerator<Y, R> {
  return made instanceof Promise ? await made : yield* made;
}

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
type Failure = { name: string; message: string; [field: string]: unknown };

const failureOf = (error: unknown): Failure => {
  // An error can be one of another realm.
  const { name = 'Error', message = String(error) } = Object(error);
  // Codes are plain; a field that cannot be posted would lose the error itself.
  const plain = Object.entries(Object(error)).filter(([, value]) => Object(value) !== value);
  return { ...Object.fromEntries(plain), name, message };
};

type Ended = { result: unknown } | { failure: Failure };

const endedBy = async (work: () => unknown): Promise<Ended> => {
  try {
    return { result: await work() };
  } catch (error) {
    return { failure: failureOf(error) };
  }
};

const resultIn = (ended: Ended): unknown => {
  if ('result' in ended) return ended.result;
  throw Object.assign(new Error(ended.failure.message), ended.failure);
};

type Order = { job: string; args: unknown; calls: string[] };
type Word = { say: 'next' | 'stop' } | (Ended & { reply: number });
type CallBack = { call: string; args: unknown[]; reply: number };
type ToReader = { value: unknown } | CallBack | Ended;

type Functions = Record<string, (...args: never[]) => unknown>;

const callIn = (functions: Functions, name: string, args: unknown[]): unknown =>
  (functions[name] as (...given: unknown[]) => unknown)(...args);

type ThreadOptions = {
  name: string;
  workerData: object;
  memory: ResourceLimits;
  /** No call and no job is under way any more. */
  onIdle?(): void;
  /** `error` is a ThreadEnded. */
  onEnd?(error: Error): void;
};

/** `H`: the functions that the thread serves by `serveCalls`. */
export const startThread = <H extends Functions>(module: URL, options: ThreadOptions) => {
  // Flags of this process, such as --input-type, are about its main module.
  const own = { workerData: options.workerData, execArgv: [], resourceLimits: options.memory };
  const worker = new Worker(module, own);
  const readers = new Map<number, (message: ToReader) => void>();
  let gone: Failure | undefined;
  let begun = 0;

  const tell = (id: number, message: ToReader): void => {
    const read = readers.get(id);
    if ('result' in message || 'failure' in message) readers.delete(id);
    if (readers.size === 0) {
      worker.unref();
      options.onIdle?.();
    }
    read?.(message);
  };
  const end = (why: string): void => {
    if (gone !== undefined) return;
    gone = { name: 'ThreadEnded', message: `${options.name} ${why}` };
    for (const id of readers.keys()) tell(id, { failure: gone });
    options.onEnd?.(Object.assign(new Error(gone.message), gone));
  };
  // Under `node --watch` Node posts the names of files that the thread has read.
  worker.on('message', ({ id, ...message }) => tell(id, message));
  worker.on('error', (error) => end(`failed: ${String(error)}`));
  worker.on('exit', () => end('ended'));

  const begin = (order: Order, read: (message: ToReader) => void): number => {
    begun += 1;
    readers.set(begun, read);
    worker.ref();
    if (gone === undefined) worker.postMessage({ id: begun, ...order });
    // It has certainly done nothing.
    else tell(begun, { failure: { ...gone, unknown: false } });
    return begun;
  };

  const call = <N extends keyof H & string>(job: N, ...args: Parameters<H[N]>) =>
    new Promise<Ended>((resolve) =>
      begin({ job, args, calls: [] }, (ended) => resolve(ended as Ended)),
    ).then((ended) => resultIn(ended) as ReturnType<H[N]>);

  async function* run<Y, R>(job: string, args: unknown, { signal, calls }: JobGiven<object>) {
    const received = new EventEmitter();
    const messages = on(received, 'message') as AsyncIterable<[Exclude<ToReader, CallBack>]>;
    const id = begin({ job, args, calls: Object.keys(calls) }, (message) => {
      if ('call' in message) void carryOut(message);
      else received.emit('message', message);
    });
    const post = (message: object) => worker.postMessage({ id, ...message });
    const stop = (): void => post({ say: 'stop' });
    const carryOut = async ({ reply, ...back }: CallBack): Promise<void> =>
      post({ reply, ...(await endedBy(() => callIn(calls as Functions, back.call, back.args))) });
    signal?.addEventListener('abort', stop);
    if (signal?.aborted) stop();
    try {
      for await (const [message] of messages) {
        if (!('value' in message)) return resultIn(message) as R;
        yield message.value as Y;
        post({ say: 'next' });
      }
      throw new Error('a job ends with a message');
    } finally {
      signal?.removeEventListener('abort', stop);
      if (readers.has(id)) stop();
    }
  }

  return {
    call,
    run,
    isIdle: (): boolean => readers.size === 0,
    isGone: (): boolean => gone !== undefined,
    end: async (): Promise<void> => void (await worker.terminate()),
  };
};

/** A thread for the jobs that `module` serves by `serveJobs`; it starts with the first, and ends when idle. */
export const createJobThread = (module: URL, priorityLoweredBy = 0): JobThread => {
  let started: ReturnType<typeof startThread> | undefined;
  let idle: NodeJS.Timeout | undefined;

  const end = async (): Promise<void> => {
    clearTimeout(idle);
    const last = started;
    started = undefined;
    await last?.end();
  };

  const options: ThreadOptions = {
    name: 'the thread of this job',
    workerData: { priorityLoweredBy },
    memory: MEMORY,
    onIdle: () => {
      clearTimeout(idle);
      idle = setTimeout(() => started?.isIdle() && void end(), IDLE_MS).unref();
    },
  };

  return {
    run: (job, args, given) => {
      clearTimeout(idle);
      if (started?.isGone() !== false) started = startThread(module, options);
      return started.run(job.name, args, given);
    },
    end,
  };
};

/** In a thread whose functions take no time to wait for. Of an opening that fails, each call has its error. */
export const serveCalls = async (
  opening: Promise<Functions>,
  asFailure: (error: unknown) => Error,
): Promise<void> => {
  const opened = await endedBy(() => opening);
  parentPort?.on('message', ({ id, job, args }: Order & { id: number }) => {
    const post = (ended: Ended) => parentPort?.postMessage({ id, ...ended });
    if ('failure' in opened) return post(opened);
    try {
      post({ result: callIn(opened.result as Functions, job, args as unknown[]) });
    } catch (error) {
      post({ failure: failureOf(asFailure(error)) });
    }
  });
};

/** By their own names; each is loaded when it first runs, so that a thread holds few modules. */
export type JobList = Record<string, () => Promise<Job<never, unknown, unknown, never>>>;

async function* load(jobs: JobList, { job, args }: Order, tools: JobTools<object>) {
  const { [job]: found } = jobs;
  if (found === undefined) throw new Error(`no job ${job} in the list of this process`);
  return yield* stepsOf(((await found()) as Job<unknown, unknown, unknown>)(args, tools));
}

/** Returns what takes the reader's messages. */
const begin = (jobs: JobList, order: Order, post: (message: ToReader) => void) => {
  const stopping = new AbortController();
  const waiting = new Map<number, (ended: Ended) => void>();
  let called = 0;
  let isOver = false;
  const callTo =
    (call: string) =>
    (...args: unknown[]) =>
      new Promise<Ended>((resolve) => {
        called += 1;
        waiting.set(called, resolve);
        post({ call, args, reply: called });
      }).then(resultIn);
  const calls = Object.fromEntries(order.calls.map((name) => [name, callTo(name)]));
  const steps = load(jobs, order, { signal: stopping.signal, calls });

  const next = async (): Promise<void> => {
    try {
      const { done = false, value } = await steps.next();
      if (!isOver) post(done ? { result: value } : { value });
      isOver ||= done;
    } catch (error) {
      if (!isOver) post({ failure: failureOf(error) });
      isOver = true;
    }
  };
  const drain = async (): Promise<void> => {
    stopping.abort();
    while (!isOver) await next();
  };

  for (let ahead = 0; ahead < AHEAD; ahead += 1) void next();
  return (message: Word): void => {
    if ('say' in message) void (message.say === 'next' ? next() : drain());
    else {
      waiting.get(message.reply)?.(message);
      waiting.delete(message.reply);
    }
  };
};

/** For the module that threads start with; does nothing where a process imports it. */
export const serveJobs = (jobs: JobList): void => {
  const { priorityLoweredBy } = (workerData ?? {}) as { priorityLoweredBy?: number };
  const port = parentPort;
  if (port === null || priorityLoweredBy === undefined) return;
  if (priorityLoweredBy > 0) takeLowPriority(priorityLoweredBy);
  const underWay = new Map<number, ReturnType<typeof begin>>();
  port.on('message', ({ id, ...message }: { id: number } & (Order | Word)) => {
    const post = (own: ToReader): void => {
      if ('result' in own || 'failure' in own) underWay.delete(id);
      port.postMessage({ id, ...own });
    };
    if ('job' in message) underWay.set(id, begin(jobs, message, post));
    else underWay.get(id)?.(message);
  });
};
