/**
 * gaps §17 as docs/backup.md walks through it: a backup, a charge after it, a restore of the copy.
 * The provider's ledger is not put back, for a real provider forgets nothing.
 */
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import sale from '../../examples/sale.json' with { type: 'json' };
import { commandsOf, runCommandOf, runInShell } from '../support/backup-page.ts';
import { entriesOfLedger, expectLedgerMatchesLog } from '../support/ledger-and-log.ts';
import type { CommandResponse } from '../support/service-client.ts';
import { SECRET, startInProcess, token } from '../support/service-in-process.ts';
import { startService } from '../support/service-processes.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

const PAYMENTS = '/api/v1/payments';
const SETTINGS = { JWT_SECRET: SECRET, LOG_LEVEL: 'warn' };

const outcomeOf = ({ status, json }: CommandResponse) => ({
  status,
  paymentId: json.paymentId,
  state: json.status,
  transactions: json.transactions.map(({ id, type, amount }) => ({ id, type, amount })),
});

test('backup, charge, restore, acknowledge, repeat: the provider has one charge', async () => {
  using temporary = temporaryFolder();
  const folder = temporary.path;
  const headers = {
    authorization: `Bearer ${await token('m_demo')}`,
    'idempotency-key': 'order-1',
  };
  const dataDir = join(folder, 'data');
  await using service = await startInProcess({ dataDir, env: SETTINGS });
  const own = { ...SETTINGS, DATA_DIR: dataDir, PORT: String(service.port) };
  expect(
    (await service.post(PAYMENTS, sale, { ...headers, 'idempotency-key': 'before' })).status,
  ).toBe(200);
  expect(await runCommandOf('backup', folder, own)).toMatchObject({ code: 0 });
  const first = await service.post(PAYMENTS, sale, headers);
  expect(first.status).toBe(200);
  await service[Symbol.asyncDispose]();

  const restored = join(folder, 'restored');
  const [copy = ''] = commandsOf('restore', folder).split('\n');
  expect(await runInShell(copy, {})).toMatchObject({ code: 0 });
  const ledger = 'provider-ledger.sqlite';
  copyFileSync(join(dataDir, ledger), join(restored, ledger));
  await using again = await startService({ dataDir: restored, env: SETTINGS });
  const there = { ...SETTINGS, DATA_DIR: restored, PORT: String(again.port) };
  expect((await again.post(PAYMENTS, sale, headers)).json).toMatchObject({
    error: 'SERVICE_UNAVAILABLE',
    details: [expect.anything(), expect.stringContaining('payments reconcile --acknowledge')],
  });
  expect((await again.get(PAYMENTS, headers)).status).toBe(200);
  const lines = () => again.stdout().match(/"level":"error"[^\n]*older copy/g) ?? [];
  // The log is written beside the requests, a moment later.
  await until('the error line is written', () => lines().length > 0);
  expect(lines()).toHaveLength(1);
  // On a busy machine, or over HTTP, the comparison may end after the banner.
  expect(again.stderr()).toMatch(/only read until (payments reconcile --acknowledge|it is)/);

  const opened = await runCommandOf('open', folder, there);
  expect(opened).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/MISSING_IN_LOG .*\nacknowledged up to entry 2 of the ledger/s),
  });
  expect(outcomeOf(await again.post(PAYMENTS, sale, headers))).toEqual(outcomeOf(first));
  again.kill('SIGTERM');
  expect(await again.exited).toMatchObject({ code: 0 });
  expect((await expectLedgerMatchesLog(restored)).size).toBe(2);
  expect(await entriesOfLedger(restored)).toHaveLength(2);
});
