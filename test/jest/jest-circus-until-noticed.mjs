/**
 * Jest's test runner for Stryker: once a test has noticed a change, the tests after it are skipped.
 * Stryker counts what each test reaches with a runner alone that is called jest-circus.
 */
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const { default: circus } = require('jest-circus/runner');
const { createEmptyTestResult } = createRequire(require.resolve('jest'))('@jest/test-result');

/** Jest takes a file without any test for a mistake. */
const SKIPPED = { ancestorTitles: [], fullName: '', title: '', status: 'pending' };

/** The change that was noticed last, by Stryker's number. */
let noticed;

export default async (globalConfig, config, environment, ...rest) => {
  const change = process.env.__STRYKER_ACTIVE_MUTANT__;
  const isNoticed = () => change !== undefined && noticed === change;
  if (isNoticed()) return { ...createEmptyTestResult(), testResults: [SKIPPED] };
  const handle = environment.handleTestEvent?.bind(environment);
  environment.handleTestEvent = async (event, state) => {
    await handle?.(event, state);
    if (event.name === 'test_start' && isNoticed()) event.test.mode = 'skip';
    if (event.name === 'test_done' && event.test.errors.length > 0) noticed = change;
  };
  return circus(globalConfig, config, environment, ...rest);
};
