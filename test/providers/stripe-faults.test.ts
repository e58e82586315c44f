import { describe, expect, test } from '@jest/globals';
import { testOfLongRun } from '../support/long-run-share.ts';
import {
  ALL_CASES,
  FAST_CASES,
  type Finding,
  outcomesThatLie,
  runFaultCases,
} from '../support/stripe-fault-rounds.ts';

describe('Stripe goes wrong at the request that moves money', () => {
  let findings: Finding[] = [];
  test('what is known in the end is what Stripe did, and it did it once', async () => {
    findings = await runFaultCases(FAST_CASES, 12);
    expect(findings).toHaveLength(FAST_CASES.length);
    expect(outcomesThatLie(findings)).toEqual([]);
  });

  const kinds = ['AUTHORIZE', 'CAPTURE', 'VOID', 'REFUND'] as const;
  const all = (outcome: string): string[] => kinds.map(() => outcome);
  test.each([
    ['reset after acting', 'a lost response is found again', 'UNKNOWN', all('APPROVED')],
    ['hangs before acting', 'what never acted is fenced', 'UNKNOWN', all('FENCED')],
    // Without a trace Stripe itself does not know.
    ['500 before acting', 'a stored 5xx', 'UNKNOWN', ['FENCED', 'UNKNOWN', 'UNKNOWN', 'UNKNOWN']],
    ['401', 'never sent, and no decline', 'NOT_SENT', all('NOT_SENT')],
    ['403', 'never sent, and no decline', 'NOT_SENT', all('NOT_SENT')],
    ['429 rate_limit', 'never sent, and no decline', 'NOT_SENT', all('NOT_SENT')],
  ])('%s: %s', (name, _promise, calledAs, knownAs) => {
    const found = findings.filter(({ fault }) => fault === name);
    const ofKind = new Map(found.map(({ kind, called, known }) => [kind, [called, known]]));
    expect(kinds.map((kind) => ofKind.get(kind))).toEqual(knownAs.map((one) => [calledAs, one]));
    expect(found).toHaveLength(kinds.length);
  });
});

testOfLongRun(
  'Stripe goes wrong at each request of each operation: what is known is what it did',
  async () => {
    const findings = await runFaultCases(ALL_CASES, 12);
    expect(findings).toHaveLength(ALL_CASES.length);
    expect(outcomesThatLie(findings)).toEqual([]);
  },
);
