export type Turns = <T>(step: () => Promise<T>) => Promise<T>;

/** Steps that share a state run one after the other, whether those before failed or not. */
export const createTurns = (): Turns => {
  let last: Promise<unknown> = Promise.resolve();
  return (step) => {
    const result = last.then(step, step);
    last = result.catch(() => undefined);
    return result;
  };
};
