/**
 * gaps §17 as docs/operations.md walks through it: a backup, a charge after it, a restore of the copy.
 * The provider's ledger is not put back, for a real provider forgets nothing.
 */
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import sale from '../../examples/sale.json' with { type: 'json' };
import { SECRET, token } from '../support/in-process.ts';
import { entriesOfLedger, expectLedgerMatchesLog } from '../support/ledger-and-log.ts';
import { commandsOf, runInShell } from '../support/operations-page.ts';
import {
  type CommandResponse,
  freePort,
  NODE,
  type ServiceProcess,
  spawnService,
  startService,
  untilReady,
} from '../support/service.ts';
import { until } from '../support/until.ts';

const PAYMENTS = '/api/v1/payments';
const SETTINGS = { JWT_SECRET: SECRET, LOG_LEVEL: 'warn' };

const stopped = async (service: ServiceProcess): Promise<void> => {
  service.kill('SIGTERM');
  expect(await service.exited).toMatchObject({ code: 0 });
};

const outcomeOf = ({ status, json }: CommandResponse) => ({
  status,
  paymentId: json.paymentId,
  state: json.status,
  transactions: json.transactions.map(({ id, type, amount }) => ({ id, type, amount })),
});

/** The drill over one folder; `ledgerDir` holds the ledger, which the service's own is where left out. */
const drill = async (folder: string, settings: NodeJS.ProcessEnv, ledgerDir?: string) => {
  const headers = {
    authorization: `Bearer ${await token('m_demo')}`,
    'idempotency-key': 'order-1',
  };
  const dataDir = join(folder, 'data');
  const service = await startService({ dataDir, env: settings });
  const own = { ...settings, DATA_DIR: dataDir, PORT: String(service.port) };
  expect(
    (await service.post(PAYMENTS, sale, { ...headers, 'idempotency-key': 'before' })).status,
  ).toBe(200);
  expect(await runInShell(commandsOf('backup', folder), own)).toMatchObject({ code: 0 });
  const first = await service.post(PAYMENTS, sale, headers);
  expect(first.status).toBe(200);
  await stopped(service);

  const restored = join(folder, 'restored');
  const [copy = ''] = commandsOf('restore', folder).split('\n');
  expect(await runInShell(copy, {})).toMatchObject({ code: 0 });
  const ledger = 'provider-ledger.sqlite';
  if (ledgerDir === undefined) copyFileSync(join(dataDir, ledger), join(restored, ledger));
  await using again = await startService({ dataDir: restored, env: settings });
  const there = { ...settings, DATA_DIR: restored, PORT: String(again.port) };
  expect((await again.post(PAYMENTS, sale, headers)).json).toMatchObject({
    error: 'SERVICE_UNAVAILABLE',
    details: [expect.anything(), expect.stringContaining('payments reconcile --acknowledge')],
  });
  expect((await again.get(PAYMENTS, headers)).status).toBe(200);
  const lines = () => again.stdout().match(/"level":"error"[^\n]*older copy/g) ?? [];
  // The log is written beside the requests, a moment later.
  await until('the error line is written', () => lines().length > 0);
  expect(lines()).toHaveLength(1);
  // Over HTTP the comparison may end after the banner, on a busy machine.
  if (ledgerDir === undefined)
    expect(again.stderr()).toContain('only read until payments reconcile --acknowledge');

  const opened = await runInShell(commandsOf('open', folder), there);
  expect(opened).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/MISSING_IN_LOG .*\nacknowledged up to entry 2 of the ledger/s),
  });
  expect(outcomeOf(await again.post(PAYMENTS, sale, headers))).toEqual(outcomeOf(first));
  await stopped(again);
  return { restored, first };
};

const inFolder = async (run: (folder: string) => Promise<void>): Promise<void> => {
  const folder = mkdtempSync(join(tmpdir(), 'payments-restore-'));
  try {
    await run(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

test('F3: backup, charge, restore, acknowledge, repeat: the provider has one charge', async () => {
  await inFolder(async (folder) => {
    const { restored } = await drill(folder, SETTINGS);
    expect((await expectLedgerMatchesLog(restored)).size).toBe(2);
    expect(await entriesOfLedger(restored)).toHaveLength(2);
  });
}, 90_000);

test('F3: the same with a provider in a process of its own', async () => {
  await inFolder(async (folder) => {
    const ledgerDir = join(folder, 'provider');
    const provider = await spawnService({
      dataDir: ledgerDir,
      env: { PORT: String(await freePort()), LOG_LEVEL: 'warn' },
      command: [NODE, 'provider-simulator/main.ts'],
    });
    try {
      await untilReady(provider);
      const settings = { ...SETTINGS, PROVIDER_URL: provider.url };
      const { restored } = await drill(folder, settings, ledgerDir);
      await stopped(provider);
      expect((await expectLedgerMatchesLog(restored, ledgerDir)).size).toBe(2);
      expect(await entriesOfLedger(ledgerDir)).toHaveLength(2);
    } finally {
      await provider[Symbol.asyncDispose]();
    }
  });
}, 90_000);
