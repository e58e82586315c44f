/**
 * gaps §17 as docs/operations.md walks through it: a backup, a charge after it, a restore of the copy.
 * The provider's ledger is not put back, for a real provider forgets nothing.
 */
import { expect, test } from '@jest/globals';
import { entriesOfLedger, expectLedgerMatchesLog } from '../support/ledger-and-log.ts';
import { drill, SETTINGS } from '../support/restore-drill.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

test('backup, charge, restore, acknowledge, repeat: the provider has one charge', async () => {
  using folder = temporaryFolder();
  const { restored } = await drill(folder.path, SETTINGS);
  expect((await expectLedgerMatchesLog(restored)).size).toBe(2);
  expect(await entriesOfLedger(restored)).toHaveLength(2);
}, 240_000);
