/** `npm run test:mutation`: scripts/test-mutation.ts names sources and tests; docs/reliability.md has the score. */
const { MUTATION_TESTS = 'payment/*' } = process.env;

export default {
  testRunner: 'jest',
  jest: {
    configFile: 'jest.config.mjs',
    config: {
      // Jest loads the sources, which Stryker has changed, anew for each file.
      testRunner: '<rootDir>/test/jest/jest-circus-until-noticed.mjs',
      testMatch: MUTATION_TESTS.split(' ').map((files) => `<rootDir>/test/${files}.test.ts`),
      // It reads the sources.
      testPathIgnorePatterns: ['/payment/purity\\.test\\.ts$'],
      // A change may have a test wait for what never comes.
      testTimeout: 20_000,
    },
  },
  testRunnerNodeArgs: ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'],
  // Jest keeps the modules of every run.
  maxTestRunnerReuse: 50,
  concurrency: 2,
  coverageAnalysis: 'perTest',
  timeoutMS: 20_000,
  // TypeScript 7 has no JavaScript API, which Stryker would read a tsconfig with: there is none here.
  tsconfigFile: 'none',
  incremental: true,
  cleanTempDir: 'always',
  reporters: ['clear-text', 'progress'],
  clearTextReporter: { reportTests: false },
  // The rules of money have a minimum; the other folders have none.
  thresholds: { high: 95, low: 90, break: MUTATION_TESTS === 'payment/*' ? 90 : null },
};
