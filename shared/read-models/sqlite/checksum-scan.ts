/**
 * The checksum of all documents of a file, in the thread of its searches (search-thread.ts): it reads every
 * row, and no request waits for it.
 */
import { setImmediate as immediate } from 'node:timers/promises';
import type { Scan } from '../../runtime/scan.ts';
import { startChecksum } from '../checksum.ts';
import { contentOfColumns } from '../document-row.ts';
import type { ReadModelsChecksum } from '../port.ts';
import { COLUMNS, type ColumnList } from './columns.ts';
import { openForReading } from './search-scan.ts';

/** The address of this module, for who orders the scan. */
export const CHECKSUM_SCAN = import.meta.url;

/** Of the rows behind `after`, up to and with `upTo`: left out, of all. */
export type ChecksumArgs = { file: string; after?: number; upTo?: number };

/** After each page searches take their turn. */
const PAGE = 250;

type Row = [...columns: ColumnList, body: string, rowid: number];

const ROWS = `SELECT ${COLUMNS}, body, rowid
  FROM payment WHERE rowid > ? AND rowid <= ? ORDER BY rowid LIMIT ${PAGE}`;

/** Of the documents as they are when it calls `opened`. Throws SQLite's errors. */
export const scan: Scan<ChecksumArgs, never, ReadModelsChecksum> = async (
  { file, after = Number.MIN_SAFE_INTEGER, upTo = Number.MAX_SAFE_INTEGER },
  { call },
) => {
  const db = openForReading(file);
  try {
    // What is written from here on is not read, nor is the schema again.
    db.exec('BEGIN; SELECT 1 FROM payment LIMIT 1');
    await call('opened');
    const rows = db.prepare(ROWS);
    rows.setReturnArrays(true);
    const checksum = startChecksum();
    for (let last = after; ; ) {
      const page = rows.all(last, upTo) as unknown as Row[];
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
