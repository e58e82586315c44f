/** The side of the thread in the protocol of jobs.ts. */
import { parentPort, workerData } from 'node:worker_threads';
import {
  AHEAD,
  type Begin,
  type Ended,
  errorFrom,
  type Failure,
  type Functions,
  failureOf,
  type Job,
  type JobTools,
  outcomeOf,
  stepsOf,
  type ToThread,
} from './jobs.ts';
import { takeLowPriority } from './scheduling.ts';

/** Serves functions that take no time to wait for. Of an opening that fails, each call has its error. */
export const serveCalls = async (
  opening: Promise<Functions>,
  asFailure: (error: unknown) => Error,
): Promise<void> => {
  const opened = await outcomeOf(() => opening);
  parentPort?.on('message', ({ id, job, args }: Begin) => {
    const post = (ended: Ended) => parentPort?.postMessage({ id, ...ended });
    if ('failure' in opened) return post(opened);
    try {
      const work = (opened.result as Functions)[job] as (...given: unknown[]) => unknown;
      post({ result: work(...(args as unknown[])) });
    } catch (error) {
      post({ failure: failureOf(asFailure(error)) });
    }
  });
};

/** Of a thread: tells of a failure that ends no call. */
export const reportFailure = (error: Error): void =>
  parentPort?.postMessage({ id: 0, failure: failureOf(error) });

/** Jobs by their own names; each module is loaded with its first job, so that a thread has few. */
export type JobList = Record<string, () => Promise<Job<never, unknown, unknown, never>>>;

async function* load(jobs: JobList, { job, args }: Begin, tools: JobTools<object>) {
  const { [job]: found } = jobs;
  if (found === undefined) throw new Error(`no job ${job} in the list of this process`);
  const work = (await found()) as Job<unknown, unknown, unknown>;
  return yield* stepsOf(work(args, tools));
}

/** Returns what takes the messages to the job. */
const begin = (jobs: JobList, order: Begin, post: (message: object) => void) => {
  const stopping = new AbortController();
  const waiting = new Map<number, (ended: Ended) => void>();
  let called = 0;
  let isOver = false;
  const callTo =
    (call: string) =>
    (...args: unknown[]) =>
      new Promise((resolve, reject) => {
        if (isOver) return reject(errorFrom(LEFT));
        called += 1;
        waiting.set(called, (ended) =>
          'failure' in ended ? reject(errorFrom(ended.failure)) : resolve(ended.result),
        );
        post({ call, args, reply: called });
      });
  const calls = Object.fromEntries((order.calls ?? []).map((name) => [name, callTo(name)]));
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
  // The job lets go of its resources, also where it waits for a call.
  const leave = (): void => {
    isOver = true;
    stopping.abort();
    for (const end of waiting.values()) end({ failure: LEFT });
    steps.return(undefined).catch(() => undefined);
  };

  for (let ahead = 0; ahead < AHEAD; ahead += 1) void next();
  return (message: Exclude<ToThread, Begin>): void => {
    if ('reply' in message) {
      waiting.get(message.reply)?.(message);
      waiting.delete(message.reply);
    } else if (message.say === 'next') void next();
    else if (message.say === 'stop') stopping.abort();
    else leave();
  };
};

const LEFT: Failure = { name: 'AbortError', message: 'the reader of this job has left' };

/** For the module that threads start with; does nothing where a process imports it. */
export const serveJobs = (jobs: JobList): void => {
  const { priorityLoweredBy } = (workerData ?? {}) as { priorityLoweredBy?: number };
  const port = parentPort;
  if (port === null || priorityLoweredBy === undefined) return;
  if (priorityLoweredBy > 0) takeLowPriority(priorityLoweredBy);
  const underWay = new Map<number, ReturnType<typeof begin>>();
  port.on('message', (message: ToThread) => {
    const { id } = message;
    if ('job' in message)
      underWay.set(
        id,
        begin(jobs, message, (answer) => port.postMessage({ id, ...answer })),
      );
    else underWay.get(id)?.(message);
    if ('say' in message && message.say === 'leave') underWay.delete(id);
  });
};
