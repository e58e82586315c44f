/** The end of a provider's ledger, which can only be read forwards from a sequence number (provider.md). */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { LedgerEntry } from '../../command-api/provider/port.ts';
import { ledgerTail } from '../../command-api/provider-ahead/ledger-tail.ts';
import { propertyRuns } from '../support/property-runs.ts';

const entryAt = (sequence: number): LedgerEntry => ({
  sequence,
  operationId: `op_${sequence}`,
  kind: 'SALE',
  paymentId: `pay_${sequence}`,
  outcome: 'APPROVED',
  amount: 1,
  currency: 'USD',
  providerReference: `ref_${sequence}`,
});

/** A ledger with these sequence numbers, which gives at most `pageMax` entries at once. */
const ledgerOf = (sequences: readonly number[], pageMax = 100) => {
  const counted = { requests: 0 };
  const ledger = async (after: number, limit: number) => {
    counted.requests += 1;
    const page = sequences.filter((one) => one > after);
    const entries = page.slice(0, Math.min(limit, pageMax)).map(entryAt);
    const next = page.length > entries.length ? (entries.at(-1)?.sequence ?? null) : null;
    return { entries, next };
  };
  return { counted, ledger };
};

const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n + 1);

describe('F3: the latest entries of a ledger', () => {
  test.each([0, 1, 99, 100, 101, 5_000])('of %d entries: the last hundred', async (count) => {
    const tail = await ledgerTail(ledgerOf(upTo(count)), 0);
    expect(tail.map(({ sequence }) => sequence)).toEqual(upTo(count).slice(-100));
  });

  test('a hundred thousand entries take no more than 40 requests', async () => {
    const ledger = ledgerOf(upTo(100_000));
    expect((await ledgerTail(ledger, 0)).at(-1)?.sequence).toBe(100_000);
    expect(ledger.counted.requests).toBeLessThanOrEqual(40);
  });

  test('after a floor nothing before it is given, and nothing where the ledger ends there', async () => {
    const ledger = ledgerOf(upTo(120));
    expect((await ledgerTail(ledger, 110)).map(({ sequence }) => sequence)).toEqual(
      upTo(120).slice(110),
    );
    expect(await ledgerTail(ledger, 120)).toEqual([]);
    expect(await ledgerTail(ledger, 500)).toEqual([]);
  });

  test('whatever the gaps and the page size, the last entry is among them', async () => {
    const sequence = fc.oneof(fc.integer({ min: 1, max: 150 }), fc.integer({ min: 1, max: 1e15 }));
    const sequences = fc
      .uniqueArray(sequence, { maxLength: 60 })
      .map((all) => all.toSorted((a, b) => a - b));
    await fc.assert(
      fc.asyncProperty(
        sequences,
        fc.integer({ min: 1, max: 20 }),
        fc.oneof(fc.nat(150), fc.nat(1e15)),
        async (all, pageMax, floor) => {
          const ledger = ledgerOf(all, pageMax);
          const tail = await ledgerTail(ledger, floor);
          expect(tail.at(-1)?.sequence).toBe(all.filter((one) => one > floor).at(-1));
          expect(ledger.counted.requests).toBeLessThanOrEqual(220);
        },
      ),
      { numRuns: propertyRuns(200) },
    );
  });
});
