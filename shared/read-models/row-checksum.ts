/**
 * What shows that a document in the SQLite file is the one that was written: the file itself has no
 * checksums, so that a flipped bit would be another amount, or another payment's document.
 */
import { crc32 } from 'node:zlib';

/** A document as its row has it; `unresolved` is the JSON text of the unresolved intents. */
export type SummedRow = {
  merchantId: string;
  revision: number;
  unresolved: string | null;
  body: string;
  sum: number;
};

/** The row is not what was written; the file can be thrown away and filled again. */
export class DamagedDocument extends Error {
  override name = 'DamagedDocument';
}

/** CRC-32 over all that is read from a row, and over the payment it was looked up by. */
export const sumOf = (paymentId: string, row: Omit<SummedRow, 'sum'>): number => {
  const { merchantId, revision, unresolved, body } = row;
  return crc32(body, crc32(`${paymentId} ${merchantId} ${revision} ${unresolved ?? ''} `));
};

/** The row itself. Throws DamagedDocument. */
export const intact = <T extends SummedRow>(paymentId: string, row: T): T => {
  if (row.sum === sumOf(paymentId, row)) return row;
  throw new DamagedDocument('a document does not have its checksum');
};
