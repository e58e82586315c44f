/** Runs `work` once after `delayMs`; what it gives back cancels it. Tests pass one of their own. */
export type StartTimer = (work: () => void, delayMs: number) => () => void;

/** Node's own timer. */
export const startTimer: StartTimer = (work, delayMs) => {
  const timer = setTimeout(work, delayMs);
  return () => clearTimeout(timer);
};

/** Node's own timer, which does not keep the process running. */
export const startBackgroundTimer: StartTimer = (work, delayMs) => {
  const timer = setTimeout(work, delayMs).unref();
  return () => clearTimeout(timer);
};
