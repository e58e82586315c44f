/**
 * One look at the text of a create's body, which tells of nearly every request that the search for
 * the card number in each of its texts would find nothing (gaps §4).
 */
import { CARD_DIGITS_MIN } from '../../shared/payment/card-digits.ts';
import { needsCare } from '../../shared/runtime/exact-json.ts';

/** As many digits as a card number has at least, or more, without a letter between them. */
const RUNS = new RegExp(`[0-9](?:[^A-Za-z0-9]*[0-9]){${CARD_DIGITS_MIN - 1},}`, 'g');
/** The pattern could look at each sign of a longer text many times, and nobody's create is as long. */
const TEXT_MAX = 4096;

/**
 * True where the number stands once in the text, whole and in a row, and the text holds no other 12
 * digits without a letter between them. False says nothing: also for a text with an escape or with a
 * sign that is not ASCII, for one with an exponent, whose value has digits that the text has not, and
 * for a long one.
 */
export const holdsNumberAlone = (text: string, number: string): boolean => {
  if (text.length > TEXT_MAX || text.includes('\\')) return false;
  if (Buffer.byteLength(text) !== text.length) return false;
  const [run, ...more] = text.match(RUNS) ?? [];
  if (more.length > 0) return false;
  return run === number && !needsCare(text);
};
