/** A checksum over documents in any order: the drivers' stores keep no common order. */
import { createHash } from 'node:crypto';
import type { ReadModelsChecksum } from './port.ts';

const HASH_BYTES = 32;

/** The parts of a document that its checksum covers. */
export type ChecksummedDocument = {
  paymentId: string;
  merchantId: string;
  revision: number;
  /** JSON text of the unresolved intents; absent and null are the same. */
  unresolved?: string | null | undefined;
  body: string;
};

/** Takes documents one by one: each is hashed alone, and the hashes are combined with XOR. */
export const startChecksum = () => {
  const combined = new Uint8Array(HASH_BYTES);
  let documents = 0;
  return {
    add: (document: ChecksummedDocument): void => {
      const { paymentId, merchantId, revision, unresolved, body } = document;
      const whole = JSON.stringify([paymentId, merchantId, revision, unresolved ?? null, body]);
      const hash = createHash('sha256').update(whole).digest();
      for (let at = 0; at < HASH_BYTES; at += 1)
        combined[at] = (combined[at] ?? 0) ^ (hash[at] ?? 0);
      documents += 1;
    },
    result: (): ReadModelsChecksum => ({ documents, hash: Buffer.from(combined).toString('hex') }),
  };
};
