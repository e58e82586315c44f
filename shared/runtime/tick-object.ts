import { executionAsyncResource } from 'node:async_hooks';

const kept: object[] = [];

/**
 * Keeps one of Node's `process.nextTick` objects: after a collection that finds none, later ones
 * cost more.
 */
export const keepTickObject = (): Promise<object> =>
  new Promise((resolve) => {
    process.nextTick(() => {
      const tickObject = executionAsyncResource();
      kept.push(tickObject);
      resolve(tickObject);
    });
  });
