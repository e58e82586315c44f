/**
 * The card numbers that a body gives under a key spelled `number` or `cvv`, wherever and however often
 * (gaps §4, ADR-0124). Of two equal keys a JSON parser keeps the last one alone, so the text is read.
 */
import { CARD_DIGITS_MAX, CARD_DIGITS_MIN } from '../../shared/payment/card-digits.ts';
import { digitRuns } from '../../shared/runtime/digit-runs.ts';

const SPELLED = /"(?:number|cvv)"\s*:\s*("(?:[^"\\]|\\.)*"|-?[0-9]+)/g;
/** A small letter that is written as an escape, as in `\u006eumber`. */
const ESCAPED_LETTER = /\\u00([67][0-9a-f])/gi;

const withPlainLetters = (text: string): string =>
  text.replace(ESCAPED_LETTER, (_escape, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );

const decoded = (token: string): string => {
  try {
    return String(JSON.parse(token));
  } catch {
    return token;
  }
};

/** The numbers of 12 to 19 digits under such keys in the text of a body, other than `own`, in ASCII. */
export const spelledNumbers = (text: string, own: string | undefined): string[] => {
  const numbers = new Set<string>();
  for (const [, token = ''] of withPlainLetters(text).matchAll(SPELLED)) {
    if (token.slice(1, -1) === own) continue;
    for (const { digits } of digitRuns(decoded(token), CARD_DIGITS_MIN)) {
      if (digits.length <= CARD_DIGITS_MAX) numbers.add(digits);
    }
  }
  if (own !== undefined) numbers.delete(own);
  return [...numbers];
};
