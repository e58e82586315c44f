/** Jest in ESM mode: Node strips the types, as in production. */
export default {
  testEnvironment: 'node',
  // A busy machine is no failure; what has to be quick is asserted where it is tested.
  testTimeout: 20_000,
  testMatch: ['<rootDir>/test/**/*.test.ts'],
  extensionsToTreatAsEsm: ['.ts'],
  transform: { '\\.ts$': '<rootDir>/test/strip-types.cjs' },
};
