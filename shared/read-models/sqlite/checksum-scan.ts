/**
 * The checksum of all documents of a file, in the thread of its searches (search-thread.ts): it reads every
 * row, and no request waits for it.
 */
import { setImmediate as immediate } from 'node:timers/promises';
import type { Scan } from '../../runtime/scan.ts';
import { startChecksum } from '../checksum.ts';
import type { DocumentRow } from '../document-row.ts';
import type { ReadModelsChecksum } from '../port.ts';
import type { ColumnList } from './columns.ts';
import { openForReading } from './search-scan.ts';

/** The address of this module, for who orders the scan. */
export const CHECKSUM_SCAN = import.meta.url;

export type ChecksumArgs = { file: string };

/** After each page searches take their turn. */
const PAGE = 250;

type Row = [rowid: number, ...columns: ColumnList, body: string];

const ROWS = `SELECT rowid, payment_id, merchant_id, revision, status, created_at, amount, last4,
  merchant_reference, unresolved_since, unresolved, body
  FROM payment WHERE rowid > ? ORDER BY rowid LIMIT ${PAGE}`;

const rowOf = (row: Row): DocumentRow => {
  const [, paymentId, merchantId, revision, status, createdAt, amount, last4] = row;
  const [, , , , , , , , merchantReference, unresolvedSince, unresolved, body] = row;
  return {
    ...{ paymentId, merchantId, revision, status, createdAt, amount, last4 },
    ...{ merchantReference, unresolvedSince, unresolved, body },
  };
};

/** Of the documents that were committed before. Throws SQLite's errors. */
export const scan: Scan<ChecksumArgs, never, ReadModelsChecksum> = async ({ file }) => {
  const db = openForReading(file);
  try {
    const rows = db.prepare(ROWS);
    rows.setReturnArrays(true);
    const checksum = startChecksum();
    for (let last = Number.MIN_SAFE_INTEGER; ; ) {
      const page = rows.all(last) as unknown as Row[];
      for (const row of page) checksum.add(rowOf(row));
      if (page.length < PAGE) return checksum.result();
      last = page.at(-1)?.[0] ?? last;
      await immediate();
    }
  } finally {
    db.close();
  }
};
