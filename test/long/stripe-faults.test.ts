import { expect, test } from '@jest/globals';
import { ALL_CASES, outcomesThatLie, runFaultCases } from '../support/stripe-fault-rounds.ts';

test('Stripe goes wrong at each request of each operation: what is known is what it did', async () => {
  const findings = await runFaultCases(ALL_CASES, 12);
  expect(findings).toHaveLength(ALL_CASES.length);
  expect(outcomesThatLie(findings)).toEqual([]);
}, 120_000);
