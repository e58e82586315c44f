/** For tests that hang: a busy machine needs a good part of it. */
const HANGS_MS = 40_000;

/** How long it looks often; what takes longer than that is looked for less often. */
const SOON_MS = 300;

/** Waits until a condition holds, looking every few milliseconds; fails after `timeoutMs`. */
export const until = async (
  what: string,
  holds: () => boolean | Promise<boolean>,
  timeoutMs = HANGS_MS,
): Promise<void> => {
  const begun = performance.now();
  while (!(await holds())) {
    const elapsedMs = performance.now() - begun;
    if (elapsedMs > timeoutMs) throw new Error(`not within ${timeoutMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, elapsedMs < SOON_MS ? 5 : 20));
  }
};
