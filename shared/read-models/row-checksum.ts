/**
 * A checksum in each row of the read models' SQLite file: the file itself has none, so that a
 * flipped bit could show another amount, or another payment's document.
 */
import { crc32 } from 'node:zlib';

/** A document as its row has it; `unresolved` is the JSON text of the unresolved intents. */
export type DocumentRow = {
  merchantId: string;
  revision: number;
  unresolved: string | null;
  body: string;
  checksum: number;
};

/** A row's content does not have its checksum; the file can be thrown away and filled again. */
export class DamagedDocument extends Error {
  override name = 'DamagedDocument';
}

/** CRC-32 over all that is read from a row, and over the id of the payment it was looked up by. */
export const rowChecksum = (paymentId: string, row: Omit<DocumentRow, 'checksum'>): number => {
  const { merchantId, revision, unresolved, body } = row;
  return crc32(body, crc32(`${paymentId} ${merchantId} ${revision} ${unresolved ?? ''} `));
};

/** The row, once its checksum is verified. Throws DamagedDocument. */
export const intact = <T extends DocumentRow>(paymentId: string, row: T): T => {
  if (row.checksum === rowChecksum(paymentId, row)) return row;
  throw new DamagedDocument('a document does not have its checksum');
};
