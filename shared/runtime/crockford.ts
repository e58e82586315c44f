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
