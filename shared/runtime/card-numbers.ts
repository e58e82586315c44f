/**
 * What counts as a card number in a text that would be stored or shown (gaps §4).
 * There are four definitions: the places differ in what they know of the card, and in which other
 * digits they must not lose.
 *
 * - The request's own number, exactly: in any text and key of a create, and in the codes that the
 *   provider returns for it.
 * - A payment's first six and last four digits, in a run of 12 to 19: on capture, void and refund,
 *   where the number itself is no longer known.
 * - Any run of 12 digits: in free text that is stored and where no number is known, such as the
 *   evidence of an operator, the search of an auditor, a provider's code.
 * - A run of 13 to 19 digits that passes the Luhn check: in lines of the log, which hold times,
 *   positions and amounts as well. A shorter or unchecked run would destroy those.
 */
import { CARD_DIGITS_MAX, CARD_DIGITS_MIN, TWELVE_DIGITS } from '../payment/card.ts';

/** Spaces, dashes and invisible characters: between the digits of a number they do not hide it. */
const GAPS = /[\s\p{Pd}\p{Cf}\u2212]+/gu;

/** Whether a text holds this number, plain or in blocks. */
export const holdsCardNumber = (text: string, number: string): boolean =>
  text.length >= number.length &&
  (text.includes(number) || text.replace(GAPS, '').includes(number));

/** Whether the digits of a text hold this number, with any other characters in between. */
export const digitsHoldCardNumber = (text: string, number: string): boolean =>
  text.replace(/[^0-9]/g, '').includes(number);

/** Stops after the longest card number, so that a text of digits alone is searched in linear time. */
const endOfDigits = (text: string, from: number): number => {
  const last = Math.min(text.length, from + CARD_DIGITS_MAX);
  let end = from;
  while (end < last && text.charCodeAt(end) >= 48 && text.charCodeAt(end) <= 57) end += 1;
  return end;
};

/** Whether 12 to 19 digits of the text begin with `first6` and end with `last4`. */
const holdsMaskedNumber = (text: string, first6: string, last4: string): boolean => {
  const compact = text.length < CARD_DIGITS_MIN ? '' : text.replace(GAPS, '');
  for (let at = compact.indexOf(first6); at !== -1; at = compact.indexOf(first6, at + 1)) {
    const digits = compact.slice(at, endOfDigits(compact, at));
    if (digits.indexOf(last4, CARD_DIGITS_MIN - last4.length) !== -1) return true;
  }
  return false;
};

/**
 * Whether one of the texts holds a run of 12 to 19 digits with the payment's first six and last
 * four. `bin` may have 6 or 8 digits.
 */
export const textsHoldCard = (texts: readonly string[], bin: string, last4: string): boolean =>
  texts.some((text) => holdsMaskedNumber(text, bin.slice(0, 6), last4));

/** Whether a text holds 12 digits in a row, or in blocks. */
export const holdsLongNumber = (text: string): boolean =>
  TWELVE_DIGITS.test(text.replace(GAPS, ''));

/** Also in blocks; in a search an underscore separates blocks too. */
const LONG_NUMBER = /\d(?:[\s\p{Pd}\p{Cf}\u2212_]*\d){11,}/gu;

/** The text with every run of 12 digits or more cut to its last four. */
export const withoutLongNumbers = (text: string): string =>
  text.replace(LONG_NUMBER, (run) => `...${run.replace(/\D/g, '').slice(-4)}`);

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

const LOGGED_RUN = /\d(?:[ -]?\d){12,}/g;
const HAS_LOGGED_RUN = /\d(?:[ -]?\d){12}/;
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

/**
 * Turns every digit of what looks like a card number, in blocks too, into a 9. The line stays JSON
 * wherever the number stood, and 13 to 19 nines never pass the check themselves.
 */
export const scrubCardNumbers = (line: string): string =>
  HAS_LOGGED_RUN.test(line)
    ? line.replace(LOGGED_RUN, (run) =>
        holdsLuhnNumber(run.replace(/\D/g, '')) ? run.replace(/\d/g, '9') : run,
      )
    : line;
