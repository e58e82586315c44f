/**
 * Runs `work` once after `delayMs` milliseconds; the returned function cancels it. A parameter where
 * time matters, so that tests can pass a manual clock.
 */
export type StartTimer = (work: () => void, delayMs: number) => () => void;

/** Node's own timer. */
export const startTimer: StartTimer = (work, delayMs) => {
  const timer = setTimeout(work, delayMs);
  return () => clearTimeout(timer);
};

/** Node's own timer, without keeping the process alive. */
export const startBackgroundTimer: StartTimer = (work, delayMs) => {
  const timer = setTimeout(work, delayMs).unref();
  return () => clearTimeout(timer);
};
