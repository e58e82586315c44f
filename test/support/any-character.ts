/** Any character for a property's texts: fast-check's own takes a table of all of them, half a second of CPU. */
import fc from 'fast-check';

const SURROGATES = { first: 0xd800, count: 0x800 };
const LAST = 0x10ffff;

const characterOf = (place: number): string =>
  String.fromCodePoint(place < SURROGATES.first ? place : place + SURROGATES.count);

const placeOf = (character: unknown): number => {
  const code = String(character).codePointAt(0) ?? 0;
  return code < SURROGATES.first ? code : code - SURROGATES.count;
};

/** A whole character, be it outside the first plane: `fc.string({ unit: anyCharacter })`. */
export const anyCharacter: fc.Arbitrary<string> = fc
  .nat({ max: LAST - SURROGATES.count })
  .map(characterOf, placeOf);
