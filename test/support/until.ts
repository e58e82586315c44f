import { HANGS_MS } from './time-bounds.ts';

/** How long it looks often; what takes longer than that is looked for less often. */
const SOON_MS = 300;

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
    await new Promise((resolve) => setTimeout(resolve, elapsedMs < SOON_MS ? 5 : 20));
  }
};

/** The result of some work; fails where it took `boundMs` or longer. */
export const within = async <T>(boundMs: number, work: () => Promise<T>): Promise<T> => {
  const begun = performance.now();
  const result = await work();
  const elapsedMs = performance.now() - begun;
  if (elapsedMs >= boundMs) throw new Error(`not within ${boundMs} ms: ${elapsedMs} ms`);
  return result;
};
