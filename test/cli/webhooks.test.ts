/** `payments webhooks`: what its options take, and what its verbs do to an endpoint. */
import { expect, test } from '@jest/globals';
import { runCli } from '../support/cli.ts';
import { startInProcess } from '../support/service-in-process.ts';

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

test('an endpoint is disabled, enabled and deleted', async () => {
  await using service = await startInProcess();
  const env = { DATA_DIR: service.dataDir, PAYMENTS_URL: service.url, NO_COLOR: '1' };
  const run = (...args: string[]) => runCli(['webhooks', ...args], env);
  const created = await run('create', 'https://shop.example/webhooks', '--format', 'json');
  const { id } = JSON.parse(created.stdout);
  expect((await run('disable', id)).stdout).toContain('DISABLED');
  expect((await run('enable', id)).stdout).toContain('ENABLED');
  expect((await run('delete', id)).stderr).toContain(`deleted: ${id}`);
  expect((await run('list')).stderr).toContain('No endpoint');
  expect((await run('delete', id)).code).toBe(1);
});
