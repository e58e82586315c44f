/**
 * Card numbers in texts that would be stored, sent or shown (gaps §4, ADR-0124). Where they count:
 * - In a create and the provider's codes for it: the request's own number.
 * - On capture, void and refund: the payment's first six and last four, 12 to 19 digits apart.
 * - On the way to a topic, masked: blocks of 12 to 19 digits that pass Luhn (one order number in ten does).
 * - In typed texts: any 12 digits in a row or in blocks, and known brands between any other signs.
 * - In the log, which holds times and amounts: 13 to 19 digits that pass Luhn, also among others.
 */
import { type CardRange, cardRangeOf, PREFIX_DIGITS } from '../payment/card.ts';
import { CARD_DIGITS_MAX, CARD_DIGITS_MIN } from '../payment/fields.ts';

/** Digits of any script and NFKC form up to a letter; the rest are gaps. ASCII; the n-th is at `starts[n]`. */
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

const digitOf = (digits: string, at: number): number => digits.charCodeAt(at) - ZERO;

/** Where the character that begins there ends. */
const endOf = (text: string, start = 0): number =>
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

/** ASCII without escapes: a digit takes one character. */
const PLAIN = /^[\t\n -[\]-~]*$/;

/** So many characters in a row without a letter; most need no look, for it skips from letter to letter. */
const hasPart = (text: string, length: number): boolean => {
  let from = 0;
  for (let at = length - 1; at >= from && at < text.length; at -= 1) {
    if (kindAt(text, at) !== LETTER) continue;
    from = at + 1;
    at += length + 1;
  }
  return from + length <= text.length;
};

const digitRuns = (text: string, length: number, isJson = false): DigitRun[] => {
  if (PLAIN.test(text) && !hasPart(text, length)) return [];
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

/** With no letter between; without one a text holds no card. */
export const longRuns = (text: string): DigitRun[] => digitRuns(text, CARD_DIGITS_MIN);

/** A tree, `next[10 * node + digit]`, of numbers of 12 to 19 digits: a body may spell thousands anywhere. */
export const numberFinder = (numbers: ReadonlySet<string>): ((run: DigitRun) => boolean) => {
  const nodes = [...numbers].reduce((sum, { length }) => sum + length, 1);
  const next = new Uint32Array(10 * nodes);
  const isNumber = new Uint8Array(nodes);
  let used = 0;
  for (const number of numbers) {
    let node = 0;
    for (let at = 0; at < number.length; at += 1) {
      const edge = 10 * node + digitOf(number, at);
      if (next[edge] === 0) next[edge] = used += 1;
      node = next[edge] ?? 0;
    }
    isNumber[node] = 1;
  }
  const beginsAt = (digits: string, from: number): boolean => {
    let node = 0;
    for (let at = from; at < digits.length && isNumber[node] === 0; at += 1) {
      node = next[10 * node + digitOf(digits, at)] ?? 0;
      if (node === 0) return false;
    }
    return isNumber[node] === 1;
  };
  return ({ digits }) => {
    for (let from = 0; from + CARD_DIGITS_MIN <= digits.length; from += 1) {
      if (beginsAt(digits, from)) return true;
    }
    return false;
  };
};

/** With any characters between its digits. */
export const digitsHoldCardNumber = (text: string, number: string): boolean =>
  text.replace(/[^0-9]/g, '').includes(number);

const holdsMaskedNumber = (digits: string, first6: string, last4: string): boolean => {
  let at = digits.indexOf(last4, CARD_DIGITS_MIN - last4.length);
  for (; at !== -1; at = digits.indexOf(last4, at + 1)) {
    const end = at + last4.length;
    const beginsBefore = end - CARD_DIGITS_MIN + first6.length;
    if (digits.slice(Math.max(0, end - CARD_DIGITS_MAX), beginsBefore).includes(first6))
      return true;
  }
  return false;
};

/** 12 to 19 digits with this first six and last four; any first six without `bin`. */
export const runsHoldCard = (
  runs: readonly DigitRun[],
  bin: string | undefined,
  last4: string,
): boolean => runs.some(({ digits }) => holdsMaskedNumber(digits, bin?.slice(0, 6) ?? '', last4));

/** The Luhn check of any part of the digits, by sums up to each digit. */
const luhnOf = (digits: string): ((from: number, to: number) => boolean) => {
  const evenDoubled = new Uint32Array(digits.length + 1);
  const oddDoubled = new Uint32Array(digits.length + 1);
  for (let at = 0; at < digits.length; at += 1) {
    const digit = digitOf(digits, at);
    const doubled = digit > 4 ? 2 * digit - 9 : 2 * digit;
    const [even, odd] = at % 2 === 0 ? [doubled, digit] : [digit, doubled];
    evenDoubled[at + 1] = (evenDoubled[at] ?? 0) + even;
    oddDoubled[at + 1] = (oddDoubled[at] ?? 0) + odd;
  }
  return (from, to) => {
    // The last digit counts once.
    const sums = to % 2 === 0 ? evenDoubled : oddDoubled;
    return ((sums[to] ?? 0) - (sums[from] ?? 0)) % 10 === 0;
  };
};

export const passesLuhn = (digits: string): boolean => luhnOf(digits)(0, digits.length);

type Part = { from: number; to: number };

/** `parts` begin no later than the one that is added; those that touch become one. */
const addTo = (parts: Part[], { from, to }: Part): void => {
  const last = parts.at(-1);
  if (last === undefined || from > last.to) parts.push({ from, to });
  else last.to = Math.max(last.to, to);
};

/** 1 before each digit at which a block begins, and behind the last one. */
const blockEdges = (text: string, { starts }: DigitRun): Uint8Array => {
  const edges = new Uint8Array(starts.length + 1).fill(1);
  for (let at = 1; at < starts.length; at += 1)
    edges[at] = Number(Number(starts[at]) > endOf(text, starts[at - 1]));
  return edges;
};

const BLOCK_GAP = /^[\s\p{Pd}\p{Cf}\u2212_]*$/u;

/** Parts with nothing but spaces, dashes and underscores between their digits. */
const partsInBlocks = (text: string, run: DigitRun): Part[] => {
  const { starts } = run;
  const parts: Part[] = [];
  let from = 0;
  blockEdges(text, run).forEach((isEdge, at) => {
    if (isEdge === 0 || at === 0) return;
    const gap = text.slice(endOf(text, starts[at - 1]), starts[at]);
    if (at < starts.length && (gap === '-' || gap === ' ' || BLOCK_GAP.test(gap))) return;
    parts.push({ from, to: at });
    from = at;
  });
  return parts;
};

type FormOf = (prefix: number) => Pick<CardRange, 'lengths' | 'isChecked'>;

const anyOf = (...lengths: number[]): FormOf => {
  const form = { lengths, isChecked: true };
  return () => form;
};
const CARD_LIKE = anyOf(12, 13, 14, 15, 16, 17, 18, 19);
const LOGGED = anyOf(13, 14, 15, 16, 17, 18, 19);
const LOGGED_DIGITS_MIN = 13;

const PREFIX_SCALE = 10 ** (PREFIX_DIGITS - 1);

/** The numbers, from one edge to another, that have the form of their first eight digits. */
const numbersIn = (digits: string, formOf: FormOf, edges: Uint8Array): Part[] => {
  const passes = luhnOf(digits);
  const parts: Part[] = [];
  let prefix = Number(digits.slice(0, PREFIX_DIGITS - 1));
  for (let from = 0; from + CARD_DIGITS_MIN <= digits.length; from += 1) {
    prefix = (prefix % PREFIX_SCALE) * 10 + digitOf(digits, from + PREFIX_DIGITS - 1);
    if (edges[from] === 0) continue;
    const { lengths, isChecked } = formOf(prefix);
    for (const length of lengths) {
      const to = from + length;
      if (edges[to] === 1 && (!isChecked || passes(from, to))) addTo(parts, { from, to });
    }
  }
  return parts;
};

const numbersOfBlocks = (text: string, run: DigitRun, formOf: FormOf): Part[] =>
  numbersIn(run.digits, formOf, blockEdges(text, run));

export const looksLikeCard = (text: string, runs: DigitRun[] = longRuns(text)): boolean =>
  runs.some((run) => numbersOfBlocks(text, run, CARD_LIKE).length > 0);

/** Between any gaps. */
export const holdsKnownCard = (text: string): boolean =>
  longRuns(text).some((run) => numbersOfBlocks(text, run, cardRangeOf).length > 0);

/** A block that is long enough, and a number of this form between any gaps. */
const longBlocksAnd =
  (formOf: FormOf, isLong: (digits: string) => boolean) =>
  (text: string, run: DigitRun): Part[] => [
    ...partsInBlocks(text, run).filter(({ from, to }) => isLong(run.digits.slice(from, to))),
    ...numbersOfBlocks(text, run, formOf),
  ];

const longOnes = longBlocksAnd(cardRangeOf, ({ length }) => length >= CARD_DIGITS_MIN);

/** 12 digits in a row or in blocks, or the number of a known brand between any gaps. */
export const holdsLongNumber = (text: string): boolean =>
  longRuns(text).some((run) => longOnes(text, run).length > 0);

const joined = (parts: readonly Part[]): Part[] => {
  const all: Part[] = [];
  for (const part of parts.toSorted((a, b) => a.from - b.from)) addTo(all, part);
  return all;
};

/** With what `write` makes of each part, gaps included. */
const replaced = (
  text: string,
  runs: readonly DigitRun[],
  find: (text: string, run: DigitRun) => Part[],
  write: (run: DigitRun, part: Part) => string,
): string => {
  let kept = '';
  let end = 0;
  for (const run of runs) {
    for (const part of joined(find(text, run))) {
      kept += text.slice(end, run.starts[part.from]) + write(run, part);
      end = endOf(text, run.starts[part.to - 1]);
    }
  }
  return kept + text.slice(end);
};

const lastFour = ({ digits }: DigitRun, { to }: Part): string => `...${digits.slice(to - 4, to)}`;

export const withoutLongNumbers = (text: string): string =>
  replaced(text, longRuns(text), longOnes, lastFour);

export const withoutCardNumbers = (text: string): string =>
  replaced(text, longRuns(text), (_, run) => numbersOfBlocks(text, run, CARD_LIKE), lastFour);

const loggedOnes = longBlocksAnd(
  LOGGED,
  (digits) => numbersIn(digits, LOGGED, new Uint8Array(digits.length + 1).fill(1)).length > 0,
);

/** Makes every digit of a card number in a JSON line a 9: still JSON, and nines never pass. */
export const scrubCardNumbers = (line: string): string =>
  replaced(line, digitRuns(line, LOGGED_DIGITS_MIN, true), loggedOnes, ({ starts }, part) => {
    let nines = '9';
    for (let at = part.from + 1; at < part.to; at += 1)
      nines += `${line.slice(endOf(line, starts[at - 1]), starts[at])}9`;
    return nines;
  });
