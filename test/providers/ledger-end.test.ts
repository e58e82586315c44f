/** The end of a provider's ledger, which can only be read forwards from a sequence number (provider.md). */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { ledgerEnd } from '../../providers/http/ledger-end.ts';
import type { LedgerEntry } from '../../providers/port.ts';
import { propertyRuns } from '../support/property-runs.ts';

const entryAt = (sequence: number): LedgerEntry => ({
  cursor: String(sequence),
  operationId: `op_${sequence}`,
  kind: 'SALE',
  paymentId: `pay_${sequence}`,
  outcome: 'APPROVED',
  amount: 1,
  currency: 'USD',
  providerReference: `ref_${sequence}`,
});

/** Which pages name a next one: those that others follow, or also full ones, or all that hold an entry. */
type Naming = 'followed' | 'full' | 'each';

/** A ledger with these sequence numbers, which gives at most `pageMax` entries at once. */
const ledgerOf = (sequences: readonly number[], pageMax = 100, naming: Naming = 'followed') => {
  const counted = { requests: 0 };
  const ledger = async (after: string | null, limit: number) => {
    counted.requests += 1;
    const page = sequences.filter((one) => one > Number(after));
    const length = Math.min(limit, pageMax);
    const entries = page.slice(0, length).map(entryAt);
    const followed = page.length > entries.length;
    const named = { followed, full: entries.length === length, each: true };
    const next = named[naming] ? (entries.at(-1)?.cursor ?? null) : null;
    return { entries, next };
  };
  return { counted, ledger };
};

const sequenceOf = ({ cursor }: LedgerEntry): number => Number(cursor);
const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n + 1);

describe('the latest entries of a ledger', () => {
  // The last page may name a next one that is empty.
  test.each<Naming>(['followed', 'full', 'each'])(
    'pages that name a next one if they are %s: the last hundred',
    async (naming) => {
      for (const count of [0, 1, 99, 100, 101, 137, 300, 5_000]) {
        const { ledger } = ledgerOf(upTo(count), 100, naming);
        const end = await ledgerEnd(ledger, null);
        expect(end.map(sequenceOf)).toEqual(upTo(count).slice(-100));
        expect(await ledgerEnd(ledger, String(count))).toEqual([]);
      }
    },
  );

  test('a hundred thousand entries take no more than 40 requests', async () => {
    const { ledger, counted } = ledgerOf(upTo(100_000));
    expect((await ledgerEnd(ledger, null)).at(-1)?.cursor).toBe('100000');
    expect(counted.requests).toBeLessThanOrEqual(40);
  });

  test('after a floor nothing before it is given, and nothing where the ledger ends there', async () => {
    const { ledger } = ledgerOf(upTo(120));
    expect((await ledgerEnd(ledger, '110')).map(sequenceOf)).toEqual(upTo(120).slice(110));
    expect(await ledgerEnd(ledger, '120')).toEqual([]);
    expect(await ledgerEnd(ledger, '500')).toEqual([]);
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
        fc.constantFrom<Naming>('followed', 'full', 'each'),
        async (all, pageMax, floor, naming) => {
          const { ledger, counted } = ledgerOf(all, pageMax, naming);
          const end = await ledgerEnd(ledger, String(floor));
          expect(end.map(sequenceOf).at(-1)).toBe(all.filter((one) => one > floor).at(-1));
          expect(counted.requests).toBeLessThanOrEqual(220);
        },
      ),
      { numRuns: propertyRuns(200) },
    );
  });
});
