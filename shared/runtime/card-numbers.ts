/**
 * What counts as a card number in a text that would be stored, sent or shown (gaps §4, ADR-0124).
 * How digits are found is the same everywhere (digit-runs.ts). What makes them a card number differs,
 * for the places differ in what they know of the card and in which other digits they must not lose.
 *
 * - The request's own number: in any text and key of a create, and in the codes that the provider
 *   returns for it.
 * - A payment's first six and last four digits, 12 to 19 digits apart: on capture, void and refund,
 *   where the number itself is no longer known.
 * - What looks like a card number: blocks of digits, 12 to 19 together, that pass the Luhn check, as
 *   one order number in ten does. Masked on the way to a topic, and counted.
 * - Any 12 digits in a row or in blocks, and a number of a known brand between any other signs: in
 *   what operators and auditors type, where nothing is lost by rejecting or cutting too much.
 * - In lines of the log, which hold times, positions and amounts, 13 to 19 digits in a row that pass
 *   the Luhn check, also among other digits, and what looks like a card number.
 */
import { isKnownCardNumber } from '../payment/card.ts';
import { CARD_DIGITS_MAX, CARD_DIGITS_MIN } from '../payment/card-digits.ts';
import { type DigitRun, digitRuns } from './digit-runs.ts';

/** Whether a text holds 12 digits or more with no letter between: without them it holds no card. */
export const holdsManyDigits = (text: string): boolean =>
  digitRuns(text, CARD_DIGITS_MIN).length > 0;

/** Whether a text holds this number of 12 to 19 digits, whatever stands between them but letters. */
export const holdsCardNumber = (text: string, number: string): boolean =>
  digitRuns(text, CARD_DIGITS_MIN).some(({ digits }) => digits.includes(number));

/** Whether the digits of a text hold this number, with any other characters in between. */
export const digitsHoldCardNumber = (text: string, number: string): boolean =>
  text.replace(/[^0-9]/g, '').includes(number);

/** Whether 12 to 19 of the digits begin with `first6` and end with `last4`. */
const holdsMaskedNumber = (digits: string, first6: string, last4: string): boolean => {
  for (let at = digits.indexOf(first6); at !== -1; at = digits.indexOf(first6, at + 1)) {
    const longest = digits.slice(at, at + CARD_DIGITS_MAX);
    if (longest.indexOf(last4, CARD_DIGITS_MIN - last4.length) !== -1) return true;
  }
  return false;
};

/**
 * Whether one of the texts holds a run of 12 to 19 digits with the payment's first six and last
 * four. `bin` may have 6 or 8 digits; where it is not known, any first six count.
 */
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

/** Whether `length` digits from `start` pass the Luhn check. */
export const passesLuhn = (digits: string, start = 0, length = digits.length): boolean => {
  let sum = 0;
  for (let back = 0; back < length; back += 1) {
    const digit = digits.charCodeAt(start + length - 1 - back) - 48;
    const doubled = back % 2 === 1 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0;
};

/** Some of the digits of a run, from one index up to another. */
type Part = { from: number; to: number };

/** The run cut where something that `joins` does not accept stands between two digits. */
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
/** Spaces, dashes, underscores and invisible characters: what blocks of one number are set apart by. */
const BLOCK_GAP = /^[\s\p{Pd}\p{Cf}\u2212_]*$/u;

/** The parts of whole blocks, 12 to 19 digits together, whose digits are a card number by `holds`. */
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

/** Whether a text holds what looks like a card number, of whichever card. */
export const looksLikeCard = (text: string): boolean =>
  digitRuns(text, CARD_DIGITS_MIN).some((run) => looksLikeOne(text, run).length > 0);

/** Whether a text holds the whole number of a known brand, whatever stands between its blocks. */
export const holdsKnownCard = (text: string): boolean =>
  digitRuns(text, CARD_DIGITS_MIN).some(
    (run) => cardsOfBlocks(text, run, isKnownCardNumber).length > 0,
  );

const longOnes = (text: string, run: DigitRun): Part[] => [
  ...partsOf(text, run, BLOCK_GAP).filter(({ from, to }) => to - from >= CARD_DIGITS_MIN),
  ...cardsOfBlocks(text, run, isKnownCardNumber),
];

/** Whether a text holds 12 digits in a row or in blocks, or a known brand's number in any clothes. */
export const holdsLongNumber = (text: string): boolean =>
  digitRuns(text, CARD_DIGITS_MIN).some((run) => longOnes(text, run).length > 0);

/** Parts that overlap or touch as one, in order. */
const joined = (parts: readonly Part[]): Part[] => {
  const all: Part[] = [];
  for (const { from, to } of parts.toSorted((a, b) => a.from - b.from)) {
    const last = all.at(-1);
    if (last === undefined || from > last.to) all.push({ from, to });
    else last.to = Math.max(last.to, to);
  }
  return all;
};

/** The text with the digits of each part, and what stands between them, made `...` and the last four. */
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

/** The text with what `holdsLongNumber` finds cut to its last four digits. */
export const withoutLongNumbers = (text: string): string => cut(text, longOnes);

/** The text with what looks like a card number cut to its last four digits. */
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

/**
 * Turns every digit of what looks like a card number in a line of JSON into a 9. The line stays JSON
 * wherever the number stood, and 13 to 19 nines never pass the check themselves.
 */
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
