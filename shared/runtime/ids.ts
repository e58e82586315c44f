import { v7 } from 'uuid';

/** Crockford's base 32 (gaps §2). */
const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const BITS_PER_CHARACTER = 5;

/** Sorts as the bytes. Two `leadingZeroBits` make 128 bits 26 characters, as in a ULID. */
export const crockford = (bytes: Uint8Array, length: number, leadingZeroBits = 0): string => {
  let text = '';
  let bits = 0;
  let count = leadingZeroBits;
  for (const byte of bytes) {
    bits = (bits << 8) | byte;
    count += 8;
    while (count >= BITS_PER_CHARACTER && text.length < length) {
      count -= BITS_PER_CHARACTER;
      text += ALPHABET[(bits >> count) & 31];
    }
    bits &= (1 << count) - 1;
  }
  return text;
};

const ULID_CHARACTERS = 26;
const LEADING_ZERO_BITS = 2;
const bytes = new Uint8Array(16);

/** A UUID of version 7 in the form of a ULID, greater than all before in this process. */
export const newUlid = (): string =>
  crockford(v7(undefined, bytes), ULID_CHARACTERS, LEADING_ZERO_BITS);

const inMillisecond = { ms: 0, head: '', count: 0 };

/** A ULID of a request; within a millisecond its last two characters count, for a fifth of the work. */
export const newRequestId = (): string => {
  const ms = Date.now();
  if (ms !== inMillisecond.ms || inMillisecond.count === ALPHABET.length ** 2)
    Object.assign(inMillisecond, { ms, head: newUlid().slice(0, -2), count: 0 });
  const count = inMillisecond.count++;
  return `${inMillisecond.head}${ALPHABET[count >> BITS_PER_CHARACTER]}${ALPHABET[count & 31]}`;
};

export const newPaymentId = (): string => `pay_${newUlid()}`;

/** For one operation at the provider; its last 26 characters name the transaction too. */
export const newOperationId = (): string => `op_${newUlid()}`;

export const newEventId = (): string => v7();
