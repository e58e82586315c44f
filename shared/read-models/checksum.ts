/** A checksum over documents in any order: the drivers' stores keep no common order. */
import { hash as digestOf } from 'node:crypto';
import { contentOf, type DocumentRow } from './document-row.ts';
import type { ReadModelsChecksum } from './port.ts';

const HASH_BYTES = 32;

// A character is a byte: a text of 32 characters costs less to make than a buffer of 32 bytes.
const ENCODING = 'binary';

/** Hashes combined with XOR, and how many documents they are of. */
const startCombining = () => {
  const combined = new Uint8Array(HASH_BYTES);
  let documents = 0;
  return {
    add: (hash: string, more: number): void => {
      for (let at = 0; at < HASH_BYTES; at += 1)
        combined[at] = (combined[at] ?? 0) ^ hash.charCodeAt(at);
      documents += more;
    },
    result: (): ReadModelsChecksum => ({ documents, hash: Buffer.from(combined).toString('hex') }),
  };
};

/** The checksum of all documents from those of its parts. */
export const checksumOfParts = (parts: readonly ReadModelsChecksum[]): ReadModelsChecksum => {
  const { add, result } = startCombining();
  for (const { hash, documents } of parts)
    add(Buffer.from(hash, 'hex').toString(ENCODING), documents);
  return result();
};

/** Takes documents one by one: each is hashed alone, and the hashes are combined with XOR. */
export const startChecksum = () => {
  const { add, result } = startCombining();
  const addContent = (content: string): void => add(digestOf('sha256', content, ENCODING), 1);
  return {
    add: (row: DocumentRow): void => addContent(contentOf(row)),
    /** A document by its `contentOf`. */
    addContent,
    result,
  };
};
