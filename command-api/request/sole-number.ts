/**
 * One look at the text of a create's body, which tells of nearly every request that the search for
 * the card number in each of its texts would find nothing (gaps §4, ADR-0161).
 */
import { CARD_DIGITS_MIN } from '../../shared/payment/card-digits.ts';
import { needsCare } from './json.ts';

const BACKSLASH = 92;
const ASCII_MAX = 126;
const isLetter = (code: number): boolean => (code | 32) >= 97 && (code | 32) <= 122;
const isDigit = (code: number): boolean => code >= 48 && code <= 57;

/**
 * True where the number stands once in the text, whole and in a row, and the text holds no other 12
 * digits without a letter between them. False says nothing: also for a text with an escape or with a
 * sign that is not ASCII, and for one with an exponent, whose value has digits that the text has not.
 */
export const holdsNumberAlone = (text: string, number: string): boolean => {
  let digits = 0;
  let start = 0;
  let isMet = false;
  for (let at = 0; at <= text.length; at += 1) {
    const code = at < text.length ? text.charCodeAt(at) : 'z'.charCodeAt(0);
    if (isDigit(code)) {
      if (digits === 0) start = at;
      digits += 1;
    } else if (isLetter(code)) {
      // seeded bug: number-alone
      if (digits >= CARD_DIGITS_MIN) {
        if (isMet || digits !== number.length || !text.startsWith(number, start)) return false;
        isMet = true;
      }
      digits = 0;
    } else if (code > ASCII_MAX || code === BACKSLASH) return false;
  }
  return isMet && !needsCare(text);
};
