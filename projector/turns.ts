/** Runs a step once those before it have ended, whether they failed or not. Rejects as the step does. */
export type Turns = <T>(step: () => Promise<T>) => Promise<T>;

/** For steps that share a state, so that none sees or changes it in the middle of another. */
export const createTurns = (): Turns => {
  let last: Promise<unknown> = Promise.resolve();
  return (step) => {
    const result = last.then(step, step);
    last = result.catch(() => undefined);
    return result;
  };
};
