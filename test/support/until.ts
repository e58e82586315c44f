/** For tests that hang: a busy machine needs a good part of it. A seeded bug makes many hang. */
const HANGS_MS = process.env.TEST_END_AT_FAILURE === '1' ? 15_000 : 40_000;

/** Waits until a condition holds, looking every few milliseconds; fails after `timeoutMs`. */
export const until = async (
  what: string,
  holds: () => boolean | Promise<boolean>,
  timeoutMs = HANGS_MS,
): Promise<void> => {
  const deadline = performance.now() + timeoutMs;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`not within ${timeoutMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
};
