/** Steps that share a state run one after the other, whether those before failed or not. */
export const oneAtATime = () => {
  let last: Promise<unknown> = Promise.resolve();
  return <T>(step: () => Promise<T>): Promise<T> => {
    const result = last.then(step, step);
    last = result.catch(() => undefined);
    return result;
  };
};
