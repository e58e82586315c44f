/** Time that passes only when a test says so. */
export type ManualClock = ReturnType<typeof manualClock>;

type Timer = { atMs: number; work: () => void };

/** Long enough for every promise that needs no timer and no other process. */
const runPromises = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export const manualClock = () => {
  let nowMs = 0;
  const timers = new Set<Timer>();
  const nextUntil = (endMs: number): Timer | undefined =>
    [...timers].filter(({ atMs }) => atMs <= endMs).sort((a, b) => a.atMs - b.atMs)[0];

  return {
    nowMs: () => nowMs,
    startTimer: (work: () => void, delayMs: number) => {
      const timer = { atMs: nowMs + delayMs, work };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
    /** Lets so much time pass; each timer runs in its turn, with what it causes, at its own time. */
    advance: async (ms: number) => {
      const endMs = nowMs + ms;
      await runPromises();
      for (let timer = nextUntil(endMs); timer !== undefined; timer = nextUntil(endMs)) {
        nowMs = timer.atMs;
        timers.delete(timer);
        timer.work();
        await runPromises();
      }
      nowMs = endMs;
    },
    /** How many timers are running. */
    timers: () => timers.size,
  };
};
