import { HANGS_MS, TEST_MS_MAX } from './test/support/time-bounds.ts';

/** Jest with a test runner of our own: Node loads the modules and strips the types, as in production. */
export default {
  testEnvironment: 'node',
  testRunner: '<rootDir>/test/jest/runner.mjs',
  testTimeout: TEST_MS_MAX,
  // A worker frees hundreds of megabytes and writes what it compiled, on busy cores for longer than
  // Jest's half second.
  workerGracefulExitTimeout: HANGS_MS,
  // Not among the temporary files, which end with the run: how long each file took orders the next run.
  cacheDirectory: '<rootDir>/node_modules/.cache/jest',
  setupFilesAfterEnv: ['<rootDir>/test/jest/properties.ts'],
  testMatch: ['<rootDir>/test/**/*.test.ts'],
  // For --watch, --coverage and Stryker, where Jest itself loads the modules and has Node strip their types.
  extensionsToTreatAsEsm: ['.ts'],
  transform: {},
};
