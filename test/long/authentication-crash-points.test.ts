/** gaps §21: `kill -9` at every await while the shopper is waited for, over the simulator and over Stripe. */
import { test } from '@jest/globals';
import { DEATHS, nameOf, surviveDeath } from '../support/authentication-crashes.ts';

test.each(DEATHS.map((death) => [nameOf(death), death] as const))(
  'dead at %s: money moves once where the shopper comes, else never',
  async (_name, death) => surviveDeath(death),
  60_000,
);
