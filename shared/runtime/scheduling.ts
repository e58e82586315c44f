/** The order in which long work runs, and how it lets other work run in between. */
import { readlinkSync } from 'node:fs';
import { constants, getPriority, setPriority } from 'node:os';
import { basename } from 'node:path';
import { setImmediate as immediate } from 'node:timers/promises';

/** Tasks of one name run in order (gaps §7); a started task ends, also without its request. */
export const createQueues = () => {
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
export type Queues = ReturnType<typeof createQueues>;

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

export const piecesOf = <T>(items: readonly T[], size: number): T[][] =>
  Array.from({ length: Math.ceil(items.length / size) }, (_, n) =>
    items.slice(n * size, (n + 1) * size),
  );

/** A payment can have thousands of events (gaps §18). */
const SLICE = 100;

/** After each slice of the items other work has its turn. */
export async function* slicesOf<T>(items: readonly T[]): AsyncGenerator<readonly T[]> {
  for (const [n, slice] of piecesOf(items, SLICE).entries()) {
    if (n > 0) await immediate();
    yield slice;
  }
}

export const mapInSlices = async <T, U>(items: readonly T[], make: (item: T) => U) => {
  const made: U[] = [];
  for await (const slice of slicesOf(items)) made.push(...slice.map((item) => make(item)));
  return made;
};

const AT_ONCE = 4;

/** In order, a few at a time, so that merchants are served meanwhile. */
export const fewAtOnce = async <I, T>(items: readonly I[], look: (item: I) => Promise<T>) => {
  const results: T[] = [];
  for (const some of piecesOf(items, AT_ONCE))
    results.push(...(await Promise.all(some.map((one) => look(one)))));
  return results;
};

/** Only Linux has a priority for each thread. */
export const takeLowPriority = (by: number): void => {
  try {
    const thread = Number(basename(readlinkSync('/proc/thread-self')));
    setPriority(thread, Math.min(getPriority(thread) + by, constants.priority.PRIORITY_LOW));
  } catch {}
};
