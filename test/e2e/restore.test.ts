/**
 * gaps §17 as docs/operations.md walks through it: a backup, a charge after it, a restore of the copy.
 * The provider's ledger is not put back, for a real provider forgets nothing.
 */
import { expect, test } from '@jest/globals';
import { entriesOfLedger, expectLedgerMatchesLog } from '../support/ledger-and-log.ts';
import { drill, inFolder, SETTINGS } from '../support/restore-drill.ts';

test('backup, charge, restore, acknowledge, repeat: the provider has one charge', async () => {
  await inFolder(async (folder) => {
    const { restored } = await drill(folder, SETTINGS);
    expect((await expectLedgerMatchesLog(restored)).size).toBe(2);
    expect(await entriesOfLedger(restored)).toHaveLength(2);
  });
}, 240_000);
