/**
 * Which partition a payment belongs to: the rule of Kafka's own clients (murmur2 of the key), so
 * that any other producer or stream processor puts the same key into the same partition.
 */

const SEED = 0x9747b28c;
const MULTIPLIER = 0x5bd1e995;

/** The hash of Kafka's Java client, as a signed 32-bit number. */
const murmur2 = (data: Uint8Array): number => {
  const bytes = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const wholeWords = data.length & ~3;
  let hash = SEED ^ data.length;
  for (let at = 0; at < wholeWords; at += 4) {
    let word = Math.imul(bytes.getInt32(at, true), MULTIPLIER);
    word = Math.imul(word ^ (word >>> 24), MULTIPLIER);
    hash = Math.imul(hash, MULTIPLIER) ^ word;
  }
  if (wholeWords < data.length) {
    let rest = 0;
    for (let at = data.length - 1; at >= wholeWords; at -= 1)
      rest = (rest << 8) | bytes.getUint8(at);
    hash = Math.imul(hash ^ rest, MULTIPLIER);
  }
  hash = Math.imul(hash ^ (hash >>> 13), MULTIPLIER);
  return hash ^ (hash >>> 15);
};

/** The partition of a key, from 0. */
export const partitionOf = (key: string, partitions: number): number =>
  (murmur2(Buffer.from(key)) & 0x7fffffff) % partitions;
