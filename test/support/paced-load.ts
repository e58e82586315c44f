/** Load at a rate that does not depend on how fast the service responds, and what is seen of it. */
import { setInterval as ticks, setTimeout as wait } from 'node:timers/promises';
import { until } from './until.ts';

type PacedLoad = {
  /** How many have ended. */
  done(): number;
  /** What a piece of work said that is wrong. */
  wrong: string[];
  /** The longest that one took; set it to 0 to begin anew. */
  slowestMs: number;
  /** Resolves after so many more. */
  atLeast(more: number): Promise<void>;
  /** Begins no more, and waits for those under way. Rejects as the first that rejected. */
  end(): Promise<void>;
  /** Begins no more. */
  [Symbol.dispose](): void;
};

/** Begins `work` so many times a second; what it gives is wrong. */
export const paced = (
  perSecond: number,
  work: (n: number) => Promise<string | undefined>,
): PacedLoad => {
  const stopping = new AbortController();
  const running: Promise<void>[] = [];
  let done = 0;
  const load: PacedLoad = {
    done: () => done,
    wrong: [],
    slowestMs: 0,
    atLeast: (more) => {
      const aim = done + more;
      return until(`${more} more`, () => done >= aim);
    },
    end: async () => {
      stopping.abort();
      await beginning;
      await Promise.all(running);
    },
    [Symbol.dispose]: () => stopping.abort(),
  };
  const once = async (n: number): Promise<void> => {
    const fromMs = performance.now();
    const wrong = await work(n);
    load.slowestMs = Math.max(load.slowestMs, performance.now() - fromMs);
    if (wrong !== undefined) load.wrong.push(wrong);
    done += 1;
  };
  const begin = async (): Promise<void> => {
    const { signal } = stopping;
    const each = ticks(1000 / perSecond, undefined, { signal });
    try {
      for await (const _ of each) {
        const one = once(running.length);
        // `end` reports it.
        one.catch(() => undefined);
        running.push(one);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  };
  const beginning = begin();
  return load;
};

const LOOK_MS = 100;

/** Asks again and again, and notes the moments at which the response was another one. */
export const newestSince = (ask: () => Promise<{ text: string }>) => {
  const momentsMs: number[] = [];
  let running = true;
  const stop = (): void => {
    running = false;
  };
  const look = async (): Promise<void> => {
    for (let last = ''; running; await wait(LOOK_MS)) {
      const { text } = await ask();
      if (text !== last) momentsMs.push(performance.now());
      last = text;
    }
  };
  const looking = look();
  looking.catch(() => undefined);
  return {
    momentsMs,
    /** Rejects where a request was not answered. */
    end: async (): Promise<void> => {
      stop();
      await looking;
    },
    [Symbol.dispose]: stop,
  };
};
