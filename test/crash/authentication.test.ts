/** A share of the deaths while the shopper is waited for; test/long takes all of them. */
import { expect, test } from '@jest/globals';
import { DEATHS, nameOf, surviveDeath } from '../support/authentication-crashes.ts';

const SHARE = [
  'simulator, too late: recovery: after fence',
  'stripe, in time: sale: after provider, then recovery: before append outcome',
];
const deaths = DEATHS.filter((death) => SHARE.includes(nameOf(death)));

test('gaps §21: the share is of the table', () => {
  expect(deaths.map(nameOf).sort()).toEqual([...SHARE].sort());
});

test.each(deaths.map((death) => [nameOf(death), death] as const))(
  'gaps §21: dead at %s: money moves once where the shopper comes, else never',
  async (_name, death) => surviveDeath(death),
  60_000,
);
