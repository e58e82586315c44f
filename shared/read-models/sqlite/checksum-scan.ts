/**
 * The checksum of all documents of a file, in the thread of its searches (search-thread.ts): it reads every
 * row, and no request waits for it.
 */
import { setImmediate as immediate } from 'node:timers/promises';
import type { Scan } from '../../runtime/scan.ts';
import { startChecksum } from '../checksum.ts';
import { contentOfColumns } from '../document-row.ts';
import type { ReadModelsChecksum } from '../port.ts';
import type { ColumnList } from './columns.ts';
import { openForReading } from './search-scan.ts';

/** The address of this module, for who orders the scan. */
export const CHECKSUM_SCAN = import.meta.url;

export type ChecksumArgs = { file: string };

/** After each page searches take their turn. */
const PAGE = 250;

type Row = [...columns: ColumnList, body: string, rowid: number];

const ROWS = `SELECT payment_id, merchant_id, revision, status, created_at, amount, last4,
  merchant_reference, unresolved_since, unresolved, body, rowid
  FROM payment WHERE rowid > ? ORDER BY rowid LIMIT ${PAGE}`;

/** Of the documents that were committed before. Throws SQLite's errors. */
export const scan: Scan<ChecksumArgs, never, ReadModelsChecksum> = async ({ file }) => {
  const db = openForReading(file);
  try {
    const rows = db.prepare(ROWS);
    rows.setReturnArrays(true);
    const checksum = startChecksum();
    for (let last = Number.MIN_SAFE_INTEGER; ; ) {
      const page = rows.all(last) as unknown as Row[];
      for (const row of page) {
        last = row.pop() as number;
        const body = row.pop() as string;
        checksum.addContent(contentOfColumns(row, body));
      }
      if (page.length < PAGE) return checksum.result();
      await immediate();
    }
  } finally {
    db.close();
  }
};
