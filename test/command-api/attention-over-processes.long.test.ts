/** gaps §25 over three processes: the projector alone signs exports. */
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { runCli } from '../support/cli.ts';
import { payment, signToken } from '../support/service-in-process.ts';
import { standInMongo, startThreeProcesses } from '../support/service-processes.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

test('an export is signed by the key that the projector alone has, and another process names no manifest', async () => {
  const folder = temporaryFolder();
  const [key, out] = [join(folder.path, 'key.pem'), join(folder.path, 'log.jsonl')];
  await using readStore = await standInMongo();
  await using three = await startThreeProcesses({
    MONGODB_URL: readStore.url,
    SEALING_KEY_FILE: key,
    SEAL_EVENTS_MAX: '1',
  });
  const { JWT_SECRET = '' } = three.env;
  const bearer = await signToken({ merchant_id: 'm_1', sub: 'tester' }, JWT_SECRET);
  const created = await fetch(`${three.url}/api/v1/payments`, {
    method: 'POST',
    headers: { authorization: `Bearer ${bearer}` },
    body: JSON.stringify(payment()),
  });
  expect(created.status).toBe(200);
  const cli = (url: string | undefined, ...args: string[]) =>
    runCli(args, { PAYMENTS_URL: url, JWT_SECRET });
  const elsewhere = three.processes['query-api'][0]?.url;
  expect(await cli(elsewhere, 'export', '--out', out)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('another process serves this address'),
  });
  for (const args of [[], ['--merchant', 'm_1'], ['--from', '2020-01-01T00:00:00Z']]) {
    expect(await cli(three.url, 'export', '--out', out, '--force', ...args)).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/^Keep /),
    });
    expect(await cli(undefined, 'verify', '--file', out, '--key', key)).toMatchObject({ code: 0 });
  }
  // The query API knows the key by the seals that it has made.
  const compared = () => cli(three.url, 'verify', '--all', '--manifest', `${out}.manifest.json`);
  await until('the log is sealed', async () => (await compared()).code === 0, 60_000);
  expect((await compared()).stdout).toMatch(
    /^kept head {2}#\S+ found: the log holds it as exported$/m,
  );
  folder.remove();
});
