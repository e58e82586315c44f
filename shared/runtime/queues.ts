/** Tasks of one name run in order (gaps §7); a started task ends, also without its request. */
export type Queues = {
  run<T>(name: string, task: () => Promise<T>): Promise<T>;
  idle(): Promise<void>;
};

export const createQueues = (): Queues => {
  const tails = new Map<string, Promise<void>>();

  const run = <T>(name: string, task: () => Promise<T>): Promise<T> => {
    const before = tails.get(name);
    const result = before === undefined ? task() : before.then(task);
    const leave = () => {
      if (tails.get(name) === tail) tails.delete(name);
    };
    const tail: Promise<void> = result.then(leave, leave);
    tails.set(name, tail);
    return result;
  };

  const idle = async (): Promise<void> => {
    while (tails.size > 0) await Promise.all(tails.values());
  };

  return { run, idle };
};

/** Steps that share a state run one after the other, whether those before failed or not. */
export const oneAfterAnother = () => {
  const { run } = createQueues();
  return <T>(step: () => Promise<T>): Promise<T> => run('', step);
};

/** A call while it runs gets the result of that run. */
export const oneRunAtATime = <A extends unknown[], T>(
  work: (...args: A) => Promise<T>,
): ((...args: A) => Promise<T>) => {
  let running: Promise<T> | undefined;
  return (...args) => {
    running ??= work(...args).finally(() => {
      running = undefined;
    });
    return running;
  };
};

/** Concurrent callers share one call; its result, also a failure, is reused for `goodForMs`. */
export const shareCall = <T>(
  call: () => Promise<T>,
  goodForMs: number,
  nowMs = (): number => performance.now(),
): (() => Promise<T>) => {
  let latest: Promise<T> | undefined;
  let goodUntilMs = 0;
  return () => {
    if (latest !== undefined && nowMs() < goodUntilMs) return latest;
    goodUntilMs = Number.POSITIVE_INFINITY;
    latest = call().finally(() => {
      goodUntilMs = nowMs() + goodForMs;
    });
    return latest;
  };
};
