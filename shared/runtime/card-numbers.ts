/**
 * Card numbers in texts that would be stored, sent or shown (gaps §4, ADR-0124). Where they count:
 * - In a create and the provider's codes for it: the request's own number.
 * - On capture, void and refund: the payment's first six and last four, 12 to 19 digits apart.
 * - On the way to a topic, masked: blocks of 12 to 19 digits that pass Luhn, as one order number
 *   in ten does.
 * - In typed texts: any 12 digits in a row or in blocks, and known brands between any other signs.
 * - In the log, which holds times and amounts: 13 to 19 digits that pass Luhn, also among others.
 */
import { isKnownCardNumber } from '../payment/card.ts';
import { CARD_DIGITS_MAX, CARD_DIGITS_MIN } from '../payment/card-forms.ts';

/**
 * A run of digits of any script, and of compatibility forms (full-width, circled) as NFKC reads them. Only
 * a letter ends a run; anything else is a gap. In ASCII; the n-th came from `text.slice(starts[n], ends[n])`. */
type DigitRun = { digits: string; starts: number[]; ends: number[] };

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

/** With no letter between; without them a text holds no card. */
export const holdsManyDigits = (text: string): boolean =>
  digitRuns(text, CARD_DIGITS_MIN).length > 0;

/** In one pass, however many the numbers: a body may spell thousands. */
const holdsOneOf = (digits: string, numbers: ReadonlySet<string>): boolean => {
  for (let from = 0; from + CARD_DIGITS_MIN <= digits.length; from += 1) {
    for (let length = CARD_DIGITS_MIN; length <= CARD_DIGITS_MAX; length += 1) {
      if (numbers.has(digits.slice(from, from + length))) return true;
    }
  }
  return false;
};

/** One of these numbers of 12 to 19 digits, with anything but letters between its digits. */
export const holdsCardNumber = (text: string, numbers: ReadonlySet<string>): boolean =>
  digitRuns(text, CARD_DIGITS_MIN).some(({ digits }) => holdsOneOf(digits, numbers));

/** With any characters between its digits. */
export const digitsHoldCardNumber = (text: string, number: string): boolean =>
  text.replace(/[^0-9]/g, '').includes(number);

const holdsMaskedNumber = (digits: string, first6: string, last4: string): boolean => {
  for (
    let at = digits.indexOf(first6);
    at !== -1 && at < digits.length;
    at = digits.indexOf(first6, at + 1)
  ) {
    const longest = digits.slice(at, at + CARD_DIGITS_MAX);
    if (longest.indexOf(last4, CARD_DIGITS_MIN - last4.length) !== -1) return true;
  }
  return false;
};

/** 12 to 19 digits with this first six and last four; any first six without `bin`. */
export const textsHoldCard = (
  texts: readonly string[],
  bin: string | undefined,
  last4: string,
): boolean =>
  texts.some((text) =>
    digitRuns(text, CARD_DIGITS_MIN).some(({ digits }) =>
      holdsMaskedNumber(digits, bin?.slice(0, 6) ?? '', last4),
    ),
  );

export const passesLuhn = (digits: string, start = 0, length = digits.length): boolean => {
  let sum = 0;
  for (let back = 0; back < length; back += 1) {
    const digit = digits.charCodeAt(start + length - 1 - back) - 48;
    const doubled = back % 2 === 1 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0;
};

type Part = { from: number; to: number };

/** Cuts the run at each gap that `joins` does not match. */
const partsOf = (text: string, run: DigitRun, joins: RegExp): Part[] => {
  const parts: Part[] = [{ from: 0, to: 1 }];
  for (let at = 1; at < run.digits.length; at += 1) {
    const gap = text.slice(run.ends[at - 1], run.starts[at]);
    if (joins.test(gap)) parts[parts.length - 1] = { from: parts.at(-1)?.from ?? 0, to: at + 1 };
    else parts.push({ from: at, to: at + 1 });
  }
  return parts;
};

const NOTHING = /^$/;
const BLOCK_GAP = /^[\s\p{Pd}\p{Cf}\u2212_]*$/u;

/** Whole blocks, 12 to 19 digits together, that are a card number by `holds`. */
const cardsOfBlocks = (text: string, run: DigitRun, holds: (digits: string) => boolean): Part[] => {
  const blocks = partsOf(text, run, NOTHING);
  return blocks.flatMap(({ from }, first) =>
    blocks
      .slice(first, first + CARD_DIGITS_MAX)
      .map(({ to }) => ({ from, to }))
      .filter(({ to }) => to - from >= CARD_DIGITS_MIN && to - from <= CARD_DIGITS_MAX)
      .filter(({ to }) => holds(run.digits.slice(from, to))),
  );
};

const looksLikeOne = (text: string, run: DigitRun): Part[] => cardsOfBlocks(text, run, passesLuhn);

export const looksLikeCard = (text: string): boolean =>
  digitRuns(text, CARD_DIGITS_MIN).some((run) => looksLikeOne(text, run).length > 0);

/** Between any gaps. */
export const holdsKnownCard = (text: string): boolean =>
  digitRuns(text, CARD_DIGITS_MIN).some(
    (run) => cardsOfBlocks(text, run, isKnownCardNumber).length > 0,
  );

const longOnes = (text: string, run: DigitRun): Part[] => [
  ...partsOf(text, run, BLOCK_GAP).filter(({ from, to }) => to - from >= CARD_DIGITS_MIN),
  ...cardsOfBlocks(text, run, isKnownCardNumber),
];

/** 12 digits in a row or in blocks, or the number of a known brand between any gaps. */
export const holdsLongNumber = (text: string): boolean =>
  digitRuns(text, CARD_DIGITS_MIN).some((run) => longOnes(text, run).length > 0);

const joined = (parts: readonly Part[]): Part[] => {
  const all: Part[] = [];
  for (const { from, to } of parts.toSorted((a, b) => a.from - b.from)) {
    const last = all.at(-1);
    if (last === undefined || from > last.to) all.push({ from, to });
    else last.to = Math.max(last.to, to);
  }
  return all;
};

/** Replaces each part, gaps included, by `...` and its last four digits. */
const cut = (text: string, find: (text: string, run: DigitRun) => Part[]): string => {
  let kept = '';
  let end = 0;
  for (const run of digitRuns(text, CARD_DIGITS_MIN)) {
    for (const { from, to } of joined(find(text, run))) {
      kept += `${text.slice(end, run.starts[from])}...${run.digits.slice(to - 4, to)}`;
      end = run.ends[to - 1] ?? end;
    }
  }
  return kept + text.slice(end);
};

export const withoutLongNumbers = (text: string): string => cut(text, longOnes);

export const withoutCardNumbers = (text: string): string => cut(text, looksLikeOne);

const LOGGED_DIGITS_MIN = 13;

const holdsLuhnNumber = (digits: string): boolean => {
  for (let start = 0; start + LOGGED_DIGITS_MIN <= digits.length; start += 1) {
    const longest = Math.min(CARD_DIGITS_MAX, digits.length - start);
    for (let length = LOGGED_DIGITS_MIN; length <= longest; length += 1) {
      if (passesLuhn(digits, start, length)) return true;
    }
  }
  return false;
};

const loggedOnes = (line: string, run: DigitRun): Part[] => [
  ...partsOf(line, run, BLOCK_GAP).filter(({ from, to }) =>
    holdsLuhnNumber(run.digits.slice(from, to)),
  ),
  ...looksLikeOne(line, run).filter(({ from, to }) => to - from >= LOGGED_DIGITS_MIN),
];

/** Makes every digit of a card number in a JSON line a 9: still JSON, and nines never pass. */
export const scrubCardNumbers = (line: string): string => {
  let kept = '';
  let end = 0;
  for (const run of digitRuns(line, LOGGED_DIGITS_MIN, true)) {
    for (const { from, to } of joined(loggedOnes(line, run))) {
      for (let at = from; at < to; at += 1) {
        kept += `${line.slice(end, run.starts[at])}9`;
        end = run.ends[at] ?? end;
      }
    }
  }
  return kept + line.slice(end);
};
