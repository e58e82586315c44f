/** The ids that this service makes: all of them sort by the time they were made. */
import { v7 } from 'uuid';

/** Crockford's base 32, the alphabet of payment ids and operation ids (gaps §2). */
const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
const BITS_PER_CHARACTER = 5;

/**
 * The first `length` characters of some bytes, 5 bits each. `leadingZeroBits` are put before the
 * first byte, so that 128 bits fill 26 characters as in a ULID. Texts sort as their bytes do.
 */
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

const UUID_BYTES = 16;
const ULID_CHARACTERS = 26;
/** 26 characters have 130 bits, a UUID has 128. */
const LEADING_ZERO_BITS = 2;

const bytes = new Uint8Array(UUID_BYTES);

/**
 * A UUID of version 7 in the form of a ULID: 26 characters of Crockford base 32, the first ten of
 * them the milliseconds. Each is greater than all that this process made before.
 */
export const newUlid = (): string =>
  crockford(v7(undefined, bytes), ULID_CHARACTERS, LEADING_ZERO_BITS);

const PAIR_COUNT = 1024;
const PAIRS = Array.from(
  { length: PAIR_COUNT },
  (_, at) => `${ALPHABET[at >> BITS_PER_CHARACTER]}${ALPHABET[at & 31]}`,
);
const inMillisecond = { ms: 0, head: '', count: 0 };

/**
 * The id of one request: a ULID whose last two characters count within a millisecond, so that a busy
 * process draws its random part once for many. Each is greater than all that were made before.
 */
export const newRequestId = (): string => {
  const nowMs = Date.now();
  if (nowMs !== inMillisecond.ms || inMillisecond.count === PAIR_COUNT) {
    inMillisecond.ms = nowMs;
    inMillisecond.head = newUlid().slice(0, -2);
    inMillisecond.count = 0;
  }
  inMillisecond.count += 1;
  return `${inMillisecond.head}${PAIRS[inMillisecond.count - 1]}`;
};

/** `pay_` and a ULID (gaps §2). */
export const newPaymentId = (): string => `pay_${newUlid()}`;

/** The id of one operation at the provider; its last 26 characters name the transaction too. */
export const newOperationId = (): string => `op_${newUlid()}`;

/** The id of one event: a UUID of version 7. */
export const newEventId = (): string => v7();
