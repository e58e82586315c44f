import { expect, test } from '@jest/globals';
import { surviveProviderFaults } from '../support/provider-fault-rounds.ts';

test('M4-M6: under a share of all provider faults, ledger and log agree', async () => {
  expect(await surviveProviderFaults(1, 0.1)).toBeGreaterThan(0);
}, 240_000);
