/**
 * Looks for card numbers in anything that was kept: plain, in blocks with spaces or dashes, in
 * base64 and in hex.
 */

const BASE64_CORE = 16;

/** The 16 characters that a number is sure to show in base64, for each way it can be aligned. */
const base64Cores = (number: string): string[] =>
  [0, 1, 2].map((shift) => {
    const encoded = Buffer.from('\0'.repeat(shift) + number).toString('base64');
    // The first group also holds what stood before the number.
    return encoded.slice(shift === 0 ? 0 : 4, (shift === 0 ? 0 : 4) + BASE64_CORE);
  });

const hexOf = (number: string): string => Buffer.from(number).toString('hex');

/** Every window of these lengths in every run of these characters that is one of the needles. */
const windowsFound = (text: string, runs: RegExp, needles: Map<string, string>): string[] => {
  const lengths = new Set([...needles.keys()].map(({ length }) => length));
  const found: string[] = [];
  for (const [run] of text.matchAll(runs)) {
    for (const length of lengths) {
      for (let at = 0; at + length <= run.length; at += 1) {
        const number = needles.get(run.slice(at, at + length));
        if (number !== undefined) found.push(number);
      }
    }
  }
  return found;
};

const GAPS = /[ \-\u2010-\u2015\u00a0]+/g;

/** A search for these numbers; it gives `form number` for each that a text holds. */
export const searchFor = (numbers: readonly string[]): ((text: string) => string[]) => {
  const plain = new Map(numbers.map((number) => [number, number]));
  const hex = new Map(numbers.map((number) => [hexOf(number), number]));
  const base64 = new Map(
    numbers.flatMap((number) => base64Cores(number).map((core) => [core, number] as const)),
  );
  return (text) => {
    const found = [
      ...windowsFound(text.replace(GAPS, ''), /\d{12,}/g, plain).map((n) => `digits ${n}`),
      ...windowsFound(text, /[0-9a-f]{24,}/gi, hex).map((n) => `hex ${n}`),
      ...windowsFound(text, /[A-Za-z0-9+/]{16,}/g, base64).map((n) => `base64 ${n}`),
    ];
    return [...new Set(found)];
  };
};

const checkDigit = (digits: string): number => {
  let sum = 0;
  for (let back = 0; back < digits.length; back += 1) {
    const digit = Number(digits[digits.length - 1 - back]);
    const doubled = back % 2 === 0 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return (10 - (sum % 10)) % 10;
};

/** The number that begins so and passes the Luhn check. */
export const luhnNumber = (beginning: string): string => `${beginning}${checkDigit(beginning)}`;
