/**
 * Card numbers in a create's body (gaps §4, ADR-0124): its own, and those under a key spelled
 * `number` or `cvv`, wherever and however often. Of two equal keys a JSON parser keeps the last one
 * alone, so these are read from the text.
 */
import { CARD_DIGITS_MAX, CARD_DIGITS_MIN } from '../../shared/payment/card-digits.ts';
import {
  holdsCardNumber,
  holdsManyDigits,
  looksLikeCard,
} from '../../shared/runtime/card-numbers.ts';
import { digitRuns } from '../../shared/runtime/digit-runs.ts';
import { eachText, type JsonObject } from './json.ts';

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

const spelledNumbers = (text: string, own: string | undefined): Set<string> => {
  const numbers = new Set<string>();
  for (const [, token = ''] of withPlainLetters(text).matchAll(SPELLED)) {
    if (token.slice(1, -1) === own) continue;
    for (const { digits } of digitRuns(decoded(token), CARD_DIGITS_MIN)) {
      if (digits.length <= CARD_DIGITS_MAX) numbers.add(digits);
    }
  }
  return numbers;
};

/** A value under such a key is a number given as one, not a text that holds it; metadata is kept. */
const SPELLED_FIELD = /^(?!metadata\.)(?:.*\.)?(?:number|cvv)$/;

type Found = {
  holders: ReadonlySet<string>;
  holdsOtherCard: boolean;
};

/**
 * Searches every text, unknown key and the Idempotency-Key for the card number, and what is kept
 * also for the numbers that the body spells elsewhere (gaps §4). `text` is the body as it arrived.
 */
export const searchTexts = (
  body: JsonObject,
  number: string | undefined,
  text: string,
  idempotencyKey: string | undefined,
  knownKeys: ReadonlySet<string>,
): Found => {
  const own = new Set(number === undefined ? [] : [number]);
  const every = new Set([...own, ...spelledNumbers(text, number)]);
  const holders = new Set<string>();
  let holdsOtherCard = false;
  const meet = (found: string, path: string | undefined): void => {
    if (path === 'paymentMethod.card.number' || !holdsManyDigits(found)) return;
    const isKept = path !== undefined && !SPELLED_FIELD.test(path);
    if (holdsCardNumber(found, isKept ? every : own)) holders.add(path || 'an unknown field');
    else holdsOtherCard ||= isKept && looksLikeCard(found);
  };
  if (idempotencyKey !== undefined) meet(idempotencyKey, 'Idempotency-Key');
  eachText(body, '', knownKeys, meet);
  return { holders, holdsOtherCard };
};
