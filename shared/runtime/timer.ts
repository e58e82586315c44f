/** Once; the result cancels it. Tests pass a manual clock. */
export type StartTimer = (work: () => void, delayMs: number) => () => void;

export const startTimer: StartTimer = (work, delayMs) => {
  const timer = setTimeout(work, delayMs);
  return () => clearTimeout(timer);
};

export const startBackgroundTimer: StartTimer = (work, delayMs) => {
  const timer = setTimeout(work, delayMs).unref();
  return () => clearTimeout(timer);
};
