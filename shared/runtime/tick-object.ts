import { executionAsyncResource } from 'node:async_hooks';

const kept: object[] = [];

/**
 * Keeps one of Node's `process.nextTick` objects: after a garbage collection that finds none, each
 * later one costs several times as much.
 */
export const keepTickObject = (): Promise<object> =>
  new Promise((resolve) => {
    process.nextTick(() => {
      const tickObject = executionAsyncResource();
      kept.push(tickObject);
      resolve(tickObject);
    });
  });
