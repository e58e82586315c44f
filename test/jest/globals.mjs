/** `@jest/globals` for the modules of one test file. */
export const { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test } =
  globalThis[Symbol.for('payments.jest')];
