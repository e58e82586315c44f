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

  test('a response that is lost is found again as approved', () => {
    const lost = findings.filter(({ fault }) => fault === 'reset after acting');
    expect(lost.map(({ called, known }) => [called, known])).toEqual(
      lost.map(() => ['UNKNOWN', 'APPROVED']),
    );
    expect(lost).toHaveLength(4);
  });

  test('what never acted is fenced', () => {
    const never = findings.filter(({ fault }) => fault === 'hangs before acting');
    expect(never.map(({ called, known }) => [called, known])).toEqual(
      never.map(() => ['UNKNOWN', 'FENCED']),
    );
    expect(never).toHaveLength(4);
  });

  test('a stored 5xx that left no trace stays unresolved: Stripe itself does not know', () => {
    const stored = findings.filter(({ fault }) => fault === '500 before acting');
    const known = Object.fromEntries(stored.map((finding) => [finding.kind, finding.known]));
    expect(known).toEqual({
      AUTHORIZE: 'FENCED',
      CAPTURE: 'UNKNOWN',
      VOID: 'UNKNOWN',
      REFUND: 'UNKNOWN',
    });
  });

  test.each(['401', '403', '429 rate_limit'])('%s is never sent, and no decline', (name) => {
    const rejected = findings.filter(({ fault }) => fault === name);
    expect(rejected.map(({ called }) => called)).toEqual(rejected.map(() => 'NOT_SENT'));
    expect(rejected).toHaveLength(4);
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
