/**
 * Queues by name within a process, such as of one payment (gaps §7): tasks of one name run in order,
 * and a started task ends, also when its request is gone.
 */
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
