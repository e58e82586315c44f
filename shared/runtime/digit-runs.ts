/**
 * Runs of digits in every form (gaps §4): of any script, and compatibility forms (full-width,
 * circled) as NFKC reads them. Only a letter ends a run; anything else is a gap.
 */

/** In ASCII; the n-th came from `text.slice(starts[n], ends[n])`. */
export type DigitRun = { digits: string; starts: number[]; ends: number[] };

const LETTER = 'letter';
const BACKSLASH = 92;
const isAsciiDigit = (code: number): boolean => code >= 48 && code <= 57;
const isAsciiLetter = (code: number): boolean => (code | 32) >= 97 && (code | 32) <= 122;

const escapeLength = (text: string, at: number): number => (text[at + 1] === 'u' ? 6 : 2);

const FOREIGN_DIGIT = /[[\p{Nd}\p{No}]--[0-9]]/v;

/** Rejects nearly every text, and none that holds a run. */
const mayHoldRun = (text: string, length: number, isJson: boolean): boolean => {
  let digits = 0;
  let isForeign = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (isAsciiDigit(code)) {
      digits += 1;
      if (digits === length) return true;
    } else if (code > 127) isForeign = true;
    else if (isAsciiLetter(code)) digits = isForeign ? digits : 0;
    else if (isJson && code === BACKSLASH) at += escapeLength(text, at) - 1;
  }
  return isForeign && FOREIGN_DIGIT.test(text);
};

const DECIMAL = /^\p{Nd}$/u;

const asciiDigitOf = (digit: string): string => {
  const code = digit.codePointAt(0) ?? 0;
  let zero = code;
  while (DECIMAL.test(String.fromCodePoint(zero - 1))) zero -= 1;
  return String((code - zero) % 10);
};

const meaningOf = (character: string): string => {
  const code = character.charCodeAt(0);
  if (isAsciiDigit(code)) return character;
  if (code < 128) return isAsciiLetter(code) ? LETTER : '';
  const plain = character.normalize('NFKC');
  if (/\p{L}/u.test(plain)) return LETTER;
  return [...plain].map((one) => (DECIMAL.test(one) ? asciiDigitOf(one) : '')).join('');
};

const characterAt = (text: string, at: number): string =>
  String.fromCodePoint(text.codePointAt(at) ?? 0);

const newRun = (): DigitRun => ({ digits: '', starts: [], ends: [] });

const add = (run: DigitRun, digits: string, start: number, end: number): void => {
  for (const digit of digits) {
    run.digits += digit;
    run.starts.push(start);
    run.ends.push(end);
  }
};

export const digitRuns = (text: string, length: number, isJson = false): DigitRun[] => {
  if (!mayHoldRun(text, length, isJson)) return [];
  const runs: DigitRun[] = [newRun()];
  for (let at = 0; at < text.length; ) {
    const character = characterAt(text, at);
    const isEscape = isJson && character === '\\';
    const end = at + (isEscape ? escapeLength(text, at) : character.length);
    const meaning = isEscape ? '' : meaningOf(character);
    if (meaning === LETTER) runs.push(newRun());
    else add(runs.at(-1) as DigitRun, meaning, at, end);
    at = end;
  }
  return runs.filter(({ digits }) => digits.length >= length);
};
