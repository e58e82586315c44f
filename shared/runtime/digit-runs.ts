/** The digits of a text, in whatever writing (gaps §4, ADR-0124). */

/**
 * A run of digits of any script, and of compatibility forms (full-width, circled) as NFKC reads them. Only
 * a letter ends a run; anything else is a gap. In ASCII; the n-th begins at `starts[n]` of the text.
 */
export type DigitRun = { digits: string; starts: Uint32Array };

const LETTER = 1;
/** Above it: so many digits more. */
const GAP = 2;

/** Of each code point, 0 until a text has it: no writing costs more than another. */
const kinds = new Uint8Array(0x11_0000);
const digitsByCode = new Map<number, string>();

const DECIMAL = /^\p{Nd}$/u;

const asciiDigitOf = (digit: string): string => {
  const code = digit.codePointAt(0) ?? 0;
  let zero = code;
  while (DECIMAL.test(String.fromCodePoint(zero - 1))) zero -= 1;
  return String((code - zero) % 10);
};

const kindOf = (code: number): number => {
  const plain = String.fromCodePoint(code).normalize('NFKC');
  const digits = [...plain].filter((one) => DECIMAL.test(one)).map(asciiDigitOf);
  const kind = /\p{L}/u.test(plain) ? LETTER : GAP + digits.length;
  if (kind > GAP) digitsByCode.set(code, digits.join(''));
  kinds[code] = kind;
  return kind;
};

const kindAt = (text: string, at: number): number => {
  const code = text.codePointAt(at) ?? 0;
  return kinds[code] || kindOf(code);
};

const ZERO = 48;

export const digitOf = (digits: string, at: number): number => digits.charCodeAt(at) - ZERO;

/** Where the character that begins there ends. */
export const endOf = (text: string, start = 0): number =>
  start + ((text.codePointAt(start) ?? 0) > 0xffff ? 2 : 1);

const BACKSLASH = '\\';

/** In a JSON text an escape counts as one character, a gap. */
const nextAfter = (text: string, at: number, isJson: boolean): number => {
  if (isJson && text[at] === BACKSLASH) return at + (text[at + 1] === 'u' ? 6 : 2);
  return endOf(text, at);
};

const runIn = (text: string, from: number, digitCount: number, isJson: boolean): DigitRun => {
  const starts = new Uint32Array(digitCount);
  const codes = Buffer.alloc(digitCount);
  let count = 0;
  for (let at = from; count < digitCount; at = nextAfter(text, at, isJson)) {
    const digits = digitsByCode.get(text.codePointAt(at) ?? 0) ?? '';
    for (let one = 0; one < digits.length; one += 1, count += 1) {
      starts[count] = at;
      codes[count] = digits.charCodeAt(one);
    }
  }
  return { digits: codes.toString('latin1'), starts };
};

/** Of `length` digits or more. */
export const digitRuns = (text: string, length: number, isJson = false): DigitRun[] => {
  const runs: DigitRun[] = [];
  let [from, count] = [0, 0];
  for (let at = 0; at < text.length; ) {
    const kind = kindAt(text, at);
    const end = nextAfter(text, at, isJson);
    if (kind > GAP) count += kind - GAP;
    if (kind === LETTER || end >= text.length) {
      if (count >= length) runs.push(runIn(text, from, count, isJson));
      [from, count] = [end, 0];
    }
    at = end;
  }
  return runs;
};
