import { expect, test } from '@jest/globals';
import { surviveProviderFaults } from '../support/provider-fault-rounds.ts';

test('M4-M6: a share of the faults a provider can have; ledger and log agree', async () => {
  expect(await surviveProviderFaults(1, 0.3)).toBeGreaterThan(8);
}, 60_000);
