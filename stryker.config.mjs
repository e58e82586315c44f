/**
 * Mutation testing of the pure parts (`npm run test:mutation`): each small change that Stryker makes
 * to them has to fail a test of test/domain. docs/reliability.md has the score and the survivors.
 */
export default {
  mutate: [
    'shared/payment/*.ts',
    // Declarations of schemas, of which a change takes every test again: test/domain/stored-events
    // holds them to frozen files.
    '!shared/payment/{*events,event-fields}.ts',
    'shared/event-store/{chain,codec,fold-stream,verify-chain}.ts',
  ],
  testRunner: 'jest',
  jest: {
    configFile: 'jest.config.mjs',
    config: {
      // Which changes the sources under the tests: Jest has to load them in each file.
      testRunner: 'jest-circus/runner',
      testMatch: ['<rootDir>/test/domain/**/*.test.ts'],
      // It reads the sources, which Stryker has changed.
      testPathIgnorePatterns: ['/purity\\.test\\.ts$'],
    },
  },
  testRunnerNodeArgs: ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning'],
  coverageAnalysis: 'perTest',
  // TypeScript 7 has no JavaScript API, which Stryker would read a tsconfig with: there is none here.
  tsconfigFile: 'none',
  incremental: true,
  // Not kept in git: one run makes it anew, and it would change with every line of the sources.
  incrementalFile: 'reports/mutation/incremental.json',
  reporters: ['clear-text', 'progress'],
  thresholds: { high: 95, low: 90, break: 90 },
};
