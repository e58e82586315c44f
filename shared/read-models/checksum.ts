/** A checksum over documents in any order: the stores have none in common. */
import { createHash } from 'node:crypto';
import type { ReadModelsChecksum } from './port.ts';

const HASH_BYTES = 32;

export type DocumentToSum = {
  paymentId: string;
  merchantId: string;
  revision: number;
  /** JSON text of the unresolved intents; none and null are the same. */
  unresolved?: string | null | undefined;
  body: string;
};

/** Adds documents up; each of them is hashed by itself, and the hashes are added bit by bit. */
export const startChecksum = () => {
  const sum = new Uint8Array(HASH_BYTES);
  let documents = 0;
  return {
    add: ({ paymentId, merchantId, revision, unresolved, body }: DocumentToSum): void => {
      const whole = JSON.stringify([paymentId, merchantId, revision, unresolved ?? null, body]);
      const hash = createHash('sha256').update(whole).digest();
      for (let at = 0; at < HASH_BYTES; at += 1) sum[at] = (sum[at] ?? 0) ^ (hash[at] ?? 0);
      documents += 1;
    },
    result: (): ReadModelsChecksum => ({ documents, hash: Buffer.from(sum).toString('hex') }),
  };
};
