/** The drill of test/e2e/restore.test.ts with a provider over HTTP, which is not put back either. */
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { freePort } from '../support/free-port.ts';
import { entriesOfLedger, expectLedgerMatchesLog } from '../support/ledger-and-log.ts';
import { drill, SETTINGS, stopped } from '../support/restore-drill.ts';
import { LAUNCHER, NODE, spawnService, untilReady } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

test('backup, charge, restore, acknowledge, repeat, with a provider in a process of its own', async () => {
  using temporary = temporaryFolder();
  const folder = temporary.path;
  const ledgerDir = join(folder, 'provider');
  const provider = await spawnService({
    dataDir: ledgerDir,
    env: { PORT: String(await freePort()), LOG_LEVEL: 'warn' },
    command: [NODE, LAUNCHER, 'provider-simulator/main.ts'],
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
}, 90_000);
