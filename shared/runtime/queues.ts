/**
 * Queues by name within a process: the commands of one payment (gaps §7), the lists of one merchant. A task
 * that has begun runs to its end, also when its request is gone.
 */

/** Tasks of one name run one at a time, in the order in which they came, whatever those of other names do. */
export type Queues = {
  /** Runs the task after every earlier one of that name. */
  run<T>(name: string, task: () => Promise<T>): Promise<T>;
  /** Resolves when no task is left. */
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

/** `work`, one run at a time: a call while it runs gets the result of that run. */
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
