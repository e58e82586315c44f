/**
 * Backup and restore by the commands of docs/backup.md, while merchants write: what was
 * acknowledged before the backup began is in the copy, and the copy passes its verification.
 */
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { commandsOf, runInShell } from '../support/backup-page.ts';
import { freePort } from '../support/free-port.ts';
import { randomOf } from '../support/random.ts';
import type { Body } from '../support/service-client.ts';
import { SECRET, token } from '../support/service-in-process.ts';
import {
  type ServiceProcess,
  spawnService,
  startService,
  untilReady,
} from '../support/service-processes.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';
import { newWork, startWriters } from '../support/writers.ts';

const WRITERS = 4;

/** Every payment is there, at least as far as it was acknowledged, and the documented checks pass. */
const expectWhole = async (
  restored: ServiceProcess,
  before: ReadonlyMap<string, string>,
  env: NodeJS.ProcessEnv,
): Promise<void> => {
  await untilReady(restored);
  const headers = { authorization: `Bearer ${await token('m_demo')}` };
  for (const [paymentId, body] of before) {
    const response = await fetch(`${restored.url}/api/v1/payments/${paymentId}`, { headers });
    expect([paymentId, response.status]).toEqual([paymentId, 200]);
    const { transactions } = JSON.parse(body) as Body;
    const now = (await response.json()) as Body;
    expect(now.transactions.slice(0, transactions.length)).toEqual(transactions);
  }
  const [verify = '', reconcile = ''] = commandsOf('trust', '').trim().split('\n');
  const verified = await runInShell(verify, env);
  expect(verified).toMatchObject({ code: 0, stdout: expect.stringMatching(/^intact /) });
  const { stdout } = await runInShell(`${reconcile} --format json`, env);
  const { differences } = JSON.parse(stdout) as { differences: { kind: string }[] };
  // The ledger is copied last, so it may hold more operations than the log, never fewer.
  const others = differences.filter(
    ({ kind }) => kind !== 'MISSING_IN_LOG' && kind !== 'UNRESOLVED_IN_LOG',
  );
  expect(others).toEqual([]);
};

test('docs/backup.md: a restored backup holds everything acknowledged before the backup began', async () => {
  using temporary = temporaryFolder();
  const folder = temporary.path;
  const settings = { JWT_SECRET: SECRET, LOG_LEVEL: 'warn' };
  await using service = await startService({ dataDir: join(folder, 'data'), env: settings });
  const work = newWork(service, await token('m_demo'), randomOf());
  const writing = startWriters(work, WRITERS);
  writing.catch(() => undefined);
  await until('60 operations are acknowledged', () => work.counts.taken >= 60);

  const before = new Map([...work.acknowledged].map(([id, { body }]) => [id, body]));
  const own = { ...settings, DATA_DIR: service.dataDir, PORT: String(service.port) };
  const made = await runInShell(commandsOf('backup', folder), own);
  expect(made).toMatchObject({ code: 0, stderr: expect.stringContaining('It holds secrets') });
  const since = work.counts.taken;
  await until('the service still takes payments', () => work.counts.taken > since);
  service.kill('SIGKILL');
  await Promise.all([service.exited, writing]);

  const there = { ...settings, PORT: String(await freePort()) };
  const restored = await spawnService({
    dataDir: join(folder, 'restored'),
    env: { ...there, npm_config_loglevel: 'error' },
    // exec replaces the shell, so that npm gets the signal and passes it on.
    command: [
      'bash',
      '-c',
      commandsOf('restore', folder).replace(/^DATA_DIR=(?=\S+ npm start)/m, 'exec env $&'),
    ],
  });
  try {
    await expectWhole(restored, before, { ...there, DATA_DIR: restored.dataDir });
  } finally {
    restored.kill('SIGTERM');
    await restored.exited;
  }
});
