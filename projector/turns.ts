/** Steps that share a checkpoint, one after the other. */

/** Runs a step once those before it have ended, whether they failed or not. Rejects as the step does. */
export type Turns = <T>(step: () => Promise<T>) => Promise<T>;

/** The turns of one checkpoint: a retry never sees, or moves, a checkpoint in the middle of a batch. */
export const createTurns = (): Turns => {
  let last: Promise<unknown> = Promise.resolve();
  return (step) => {
    const result = last.then(step, step);
    last = result.catch(() => undefined);
    return result;
  };
};
