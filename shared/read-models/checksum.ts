/** A checksum over documents in any order: the stores keep no common one. */
import { hash as digestOf } from 'node:crypto';
import { contentOf, type DocumentRow } from './document-row.ts';
import type { ReadModelsChecksum } from './port.ts';

const HASH_BYTES = 32;

/** Each document is hashed alone, and the hashes are combined with XOR. */
export const startChecksum = () => {
  const combined = new Uint8Array(HASH_BYTES);
  let documents = 0;
  const addContent = (content: string): void => {
    const hash = digestOf('sha256', content, 'buffer');
    for (let at = 0; at < HASH_BYTES; at += 1) combined[at] = (combined[at] ?? 0) ^ (hash[at] ?? 0);
    documents += 1;
  };
  return {
    add: (row: DocumentRow): void => addContent(contentOf(row)),
    addContent,
    result: (): ReadModelsChecksum => ({ documents, hash: Buffer.from(combined).toString('hex') }),
  };
};
