/** `payments webhooks`: what its options take. */
import { expect, test } from '@jest/globals';
import { runCli } from '../support/cli.ts';

test.each(['', ' ', 'abc', '-1', '1.5', '1e2', '169', '0x10'])(
  'rotate refuses %j as the hours of the old secret, before any request',
  async (hours) => {
    const { code, stderr } = await runCli(['webhooks', 'rotate', 'we_1', '--old-expires', hours]);
    expect([code, stderr]).toEqual([
      2,
      `error: option '--old-expires <hours>' argument '${hours}' is invalid. It must be a whole number of hours from 0 to 168.\n`,
    ]);
  },
);
