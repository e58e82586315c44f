import { HANGS_MS } from './time-bounds.ts';

/** A look costs a request or a read: what takes longer is looked for less often. */
const pauseMs = (elapsedMs: number): number => Math.min(5 + elapsedMs / 10, 50);

/** Waits until a condition holds, looking every few milliseconds; fails after `boundMs`. */
export const until = async (
  what: string,
  holds: () => boolean | Promise<boolean>,
  boundMs = HANGS_MS,
): Promise<void> => {
  const begun = performance.now();
  while (!(await holds())) {
    const elapsedMs = performance.now() - begun;
    if (elapsedMs > boundMs) throw new Error(`not within ${boundMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, pauseMs(elapsedMs)));
  }
};

/** Whether a call succeeds, for conditions that are waited for. */
export const succeeds = async (call: Promise<unknown>): Promise<boolean> =>
  call.then(
    () => true,
    () => false,
  );

/** The result of some work; fails where it took `boundMs` or longer. */
export const within = async <T>(boundMs: number, work: () => Promise<T>): Promise<T> => {
  const begun = performance.now();
  const result = await work();
  const elapsedMs = performance.now() - begun;
  if (elapsedMs >= boundMs) throw new Error(`not within ${boundMs} ms: ${elapsedMs} ms`);
  return result;
};
