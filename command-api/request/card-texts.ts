/**
 * Finds the card in a request's texts (gaps §4, ADR-0124): its number, any under a key spelled `number` or
 * `cvv`, its cryptogram (gaps §21). Spelled ones are read from the text: JSON parsers keep one of equal keys.
 */
import type { JsonObject } from '../../shared/http/request.ts';
import type { CardInput, TokenInput } from '../../shared/payment/card.ts';
import { CARD_DIGITS_MAX, CARD_DIGITS_MIN } from '../../shared/payment/fields.ts';
import {
  type DigitRun,
  longRuns,
  looksLikeCard,
  numberFinder,
  runsHoldCard,
} from '../../shared/runtime/card-numbers.ts';
import { orElse } from '../../shared/runtime/error-text.ts';

const NUMBER_MIN = 10 ** (CARD_DIGITS_MIN - 1);

/** `path` is undefined below a key that the contract does not know. */
type Meet = (text: string, path: string | undefined) => void;

type Place = { value: unknown; path: string | undefined; unknownKey?: string };

const placesIn = (
  inside: object,
  path: string | undefined,
  knownKeys: ReadonlySet<string>,
): Place[] =>
  Object.entries(inside).map(([key, value]) => {
    if (Array.isArray(inside)) return { value, path: path && `${path}[${key}]` };
    return path !== undefined && (knownKeys.has(key) || path === 'metadata')
      ? { value, path: path === '' ? key : `${path}.${key}` }
      : { value, path: undefined, unknownKey: key };
  });

/** In the sender's order. A loop, for a body may be nested deeper than the stack. */
const eachText = (
  body: unknown,
  bodyPath: string | undefined,
  knownKeys: ReadonlySet<string>,
  meet: Meet,
): void => {
  const left: Place[] = [{ value: body, path: bodyPath }];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { value, path, unknownKey } = next;
    if (unknownKey !== undefined) meet(unknownKey, undefined);
    if (typeof value === 'string') meet(value, path);
    else if (typeof value === 'number' && Math.abs(value) >= NUMBER_MIN) meet(String(value), path);
    else if (typeof value === 'object' && value !== null)
      for (const place of placesIn(value, path, knownKeys).toReversed()) left.push(place);
  }
};

export const textsOf = (value: unknown): string[] => {
  const texts: string[] = [];
  eachText(value, undefined, new Set(), (text) => texts.push(text));
  return texts;
};

const SPELLED = /"(?:number|cvv)"\s*:\s*("[^"\\]*(?:\\.[^"\\]*)*"|-?[0-9]+)/g;
/** A small letter that is written as an escape, as in `\u006eumber`. */
const ESCAPED_LETTER = /\\u00([67][0-9a-f])/gi;

const withPlainLetters = (text: string): string =>
  text.replace(ESCAPED_LETTER, (_escape, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );

const spelledNumbers = (text: string, own: string | undefined): string[] =>
  [...withPlainLetters(text).matchAll(SPELLED)]
    .filter(([, token = '']) => token.slice(1, -1) !== own)
    .flatMap(([, token = '']) => longRuns(orElse(token, () => String(JSON.parse(token)))))
    .map(({ digits }) => digits)
    .filter(({ length }) => length <= CARD_DIGITS_MAX);

/** A value under such a key is a number given as one, not a text that holds it; metadata is kept. */
const SPELLED_FIELD = /^(?!metadata\.)(?:.*\.)?(?:number|cvv)$/;

const HOLDS_CARD = 'must not hold the card number';
const HOLDS_CRYPTOGRAM = 'must not hold the cryptogram';
const NUMBER = 'paymentMethod.card.number';
/** Some providers' tokens have the first six and last four digits of the card. */
const TOKEN = 'paymentMethod.card.token';
const CRYPTOGRAM = 'paymentMethod.card.threeDSecure.cryptogram';

/** A text with 12 digits or more. */
export type LongText = { field: string; runs: DigitRun[] };

/** Of a token's card, once the provider has described it (gaps §14). */
export const detailsOfHolders = (
  texts: readonly LongText[],
  bin: string | undefined,
  last4: string,
): string[] =>
  texts
    .filter(({ runs }) => runsHoldCard(runs, bin, last4))
    .map(({ field }) => `${field} ${HOLDS_CARD}`);

/** `text` is the body as it arrived. */
export type Arrived = { body: JsonObject; text: string; idempotencyKey: string | undefined };

type Found = { details: string[]; longTexts: LongText[]; holdsOtherCard: boolean };

/** Searches texts, unknown keys and Idempotency-Key for the card; kept texts also for all spelled numbers. */
export const searchTexts = (
  { body, text, idempotencyKey }: Arrived,
  card: CardInput | TokenInput,
  knownKeys: ReadonlySet<string>,
): Found => {
  const number = 'number' in card ? card.number : undefined;
  const cryptogram = card.threeDSecure?.cryptogram.replace(/=+$/, '');
  const own = number === undefined ? [] : [number];
  let finders: Record<'own' | 'every', (run: DigitRun) => boolean> | undefined;
  const findersOf = () => {
    const every = [...own, ...spelledNumbers(text, number)];
    return { own: numberFinder(new Set(own)), every: numberFinder(new Set(every)) };
  };
  const wordings = new Map<string, string>();
  const longTexts: LongText[] = [];
  let holdsOtherCard = false;
  const meet = (found: string, path: string | undefined): void => {
    const field = path || 'an unknown field';
    if (cryptogram !== undefined && path !== CRYPTOGRAM && found.includes(cryptogram))
      wordings.set(field, HOLDS_CRYPTOGRAM);
    const runs = path === NUMBER ? [] : longRuns(found);
    if (runs.length === 0) return;
    finders ??= findersOf();
    const isKept = path !== undefined && !SPELLED_FIELD.test(path);
    if (runs.some(isKept ? finders.every : finders.own)) wordings.set(field, HOLDS_CARD);
    if (path !== TOKEN) longTexts.push({ field, runs });
    holdsOtherCard ||= isKept && looksLikeCard(found, runs);
  };
  if (idempotencyKey !== undefined) meet(idempotencyKey, 'Idempotency-Key');
  eachText(body, '', knownKeys, meet);
  const details = [...wordings].map(([field, wording]) => `${field} ${wording}`);
  return { details, longTexts, holdsOtherCard };
};
