/** Starts that are refused: one clear line on stderr, exit code 1, no stack trace, no hang. */
import { expect } from '@jest/globals';
import { type ServiceOptions, spawnService } from './service-processes.ts';
import { until } from './until.ts';

/** Starts a service that refuses to start, and gives the lines of its stderr. */
export const rejection = async (options: ServiceOptions): Promise<string[]> => {
  await using refused = await spawnService(options);
  await until('the start is refused', () => !refused.running());
  expect(await refused.exited).toEqual({ code: 1, signal: null });
  return refused.stderr().trimEnd().split('\n');
};

/** One line in all, which begins with the setting and says these things. */
export const expectOneLine = (
  lines: readonly string[],
  setting: string,
  ...says: string[]
): void => {
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatch(new RegExp(`^payments: ${setting}\\b`));
  for (const part of says) expect(lines[0]).toContain(part);
};
