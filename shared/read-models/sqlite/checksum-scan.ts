/**
 * The checksum of all documents of a file, in a thread (search-thread.ts): it reads every row, and no
 * request waits for it.
 */
import type { Scan } from '../../runtime/scan.ts';
import { startChecksum } from '../checksum.ts';
import { contentOfColumns } from '../document-row.ts';
import type { ReadModelsChecksum } from '../port.ts';
import { COLUMNS, type ColumnList } from './columns.ts';
import { openForReading } from './search-scan.ts';

/** Module URL to pass to a scan thread. */
export const CHECKSUM_SCAN = import.meta.url;

type Row = [...columns: ColumnList, body: string];

/** Throws SQLite's errors. */
export const scan: Scan<{ file: string }, never, ReadModelsChecksum> = async ({ file }) => {
  const db = openForReading(file);
  try {
    const rows = db.prepare(`SELECT ${COLUMNS}, body FROM payment`);
    rows.setReturnArrays(true);
    const checksum = startChecksum();
    // One statement: what is written meanwhile is not read.
    for (const row of rows.iterate() as unknown as Iterable<Row>) {
      const body = row.pop() as string;
      checksum.addContent(contentOfColumns(row, body));
    }
    return checksum.result();
  } finally {
    db.close();
  }
};
