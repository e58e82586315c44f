/** Tests that need something of this machine: where it is missing, their names stand with the reason. */
import { describe, test } from '@jest/globals';

const nameOf = (name: string, missing: string | undefined): string =>
  missing === undefined ? name : `${name} (skipped: ${missing})`;

export const describeUnless = (
  missing: string | undefined,
  name: string,
  tests: () => void,
): void => (missing === undefined ? describe : describe.skip)(nameOf(name, missing), tests);

export const testUnless = (
  missing: string | undefined,
  name: string,
  run: Parameters<typeof test>[1],
  timeoutMs?: number,
): void => (missing === undefined ? test : test.skip)(nameOf(name, missing), run, timeoutMs);

/** `skip` is why the driver cannot be tested here. */
export type Driver = { name: string; skip?: string | undefined };

/** The tests of one driver of a port. */
export const describeDriver = (port: string, { name, skip }: Driver, tests: () => void): void =>
  describeUnless(skip, `${port}: ${name}`, tests);
