import { describe } from '@jest/globals';

/** `skip` is why the driver cannot be tested here; the name of its skipped tests says so. */
export type Driver = { name: string; skip?: string | undefined };

/** The tests of one driver of a port, or their names with the reason why they are skipped. */
export const describeDriver = (port: string, { name, skip }: Driver, tests: () => void): void => {
  if (skip === undefined) describe(`${port}: ${name}`, tests);
  else describe.skip(`${port}: ${name} (skipped: ${skip})`, tests);
};
