/** The checksum of read models: operators compare it with earlier ones, and two drivers with each other. */
import { createHash } from 'node:crypto';
import { expect, test } from '@jest/globals';
import {
  contentOf,
  type DocumentRow,
  startChecksum,
} from '../../shared/read-models/document-row.ts';

const row = (n: number): DocumentRow => ({
  ...{ paymentId: `pay_${n}`, merchantId: 'm_1', revision: n, status: 'AUTHORIZED' },
  ...{ createdAt: '2026-01-15T10:00:00.125Z', amount: 2500, last4: '4242' },
  ...{ merchantReference: 'Café 😀', unresolvedSince: null, unresolved: null },
  body: `{"street":"${n} Österbro Allé"}`,
});
const rows = Array.from({ length: 40 }, (_, n) => row(n));
const checksumOf = (all: readonly DocumentRow[]) => {
  const checksum = startChecksum();
  for (const one of all) checksum.add(one);
  return checksum.result();
};

test('combines the SHA-256 of each document with XOR, in any order', () => {
  const combined = Buffer.alloc(32);
  for (const one of rows)
    for (const [at, byte] of createHash('sha256').update(contentOf(one)).digest().entries())
      combined[at] = (combined[at] ?? 0) ^ byte;
  const expected = { documents: 40, hash: combined.toString('hex') };
  expect(checksumOf(rows)).toEqual(expected);
  expect(checksumOf(rows.toReversed())).toEqual(expected);
});
