/** Keeps `process.nextTick` as cheap as it is in a young process. */
import { executionAsyncResource } from 'node:async_hooks';

const kept: object[] = [];

/**
 * Holds one of the objects that Node makes for each `process.nextTick`, for as long as this thread
 * lives: a garbage collection that finds none makes every later one cost several times as much.
 * Resolves with the object.
 */
export const keepTickObject = (): Promise<object> =>
  new Promise((resolve) => {
    process.nextTick(() => {
      const tickObject = executionAsyncResource();
      kept.push(tickObject);
      resolve(tickObject);
    });
  });
