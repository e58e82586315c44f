import { expect, test } from '@jest/globals';
import { surviveProviderFaults } from '../support/provider-fault-rounds.ts';

test('M4-M6: under every provider fault on every operation, ledger and log agree', async () => {
  expect(await surviveProviderFaults(4)).toBeGreaterThan(300);
}, 300_000);
