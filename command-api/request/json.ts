/**
 * A request body's values (gaps §3), `details` on a broken contract, and the card numbers in its texts
 * (gaps §4, ADR-0124): its own, and those under a key spelled `number` or `cvv`, wherever and however
 * often. Of two equal keys a JSON parser keeps the last one alone, so these are read from the text.
 */
import type { z } from 'zod';
import { fieldName, REQUIRED } from '../../shared/http/fields.ts';
import { CARD_DIGITS_MAX, CARD_DIGITS_MIN } from '../../shared/payment/card-forms.ts';
import type { RequestedAmount } from '../../shared/payment/commands.ts';
import {
  digitRuns,
  holdsCardNumber,
  holdsManyDigits,
  looksLikeCard,
} from '../../shared/runtime/card-numbers.ts';

export type JsonObject = Record<string, unknown>;

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** 25.00 is a sum in dollars more often than 25 cents, so none of these may have a decimal point (gaps §3). */
export const AMOUNTS = ['amount', 'captureAmount', 'refundAmount'];

const READ_DEPTH_MAX = 8;

/** A `null` in an object counts as absent (gaps §3). */
export const withoutNulls = (value: unknown, depth = 0): unknown => {
  if (depth > READ_DEPTH_MAX) return value;
  if (Array.isArray(value)) return value.map((item) => withoutNulls(item, depth + 1));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, inner]) => inner !== null)
      .map(([key, inner]) => [key, withoutNulls(inner, depth + 1)]),
  );
};

/** Above 2^53-1 it is for the rules to reject (gaps §3). */
export const requestedAmount = (amount: number): RequestedAmount =>
  amount > Number.MAX_SAFE_INTEGER ? 'too large' : amount;

const NUMBER_MIN = 10 ** (CARD_DIGITS_MIN - 1);

/** `path` is undefined below a key that the contract does not know. */
type Meet = (text: string, path: string | undefined) => void;

type Place = { value: unknown; path: string | undefined; unknownKey?: string };

const itemsOf = (items: readonly unknown[], path: string | undefined): Place[] =>
  items.map((value, index) => ({
    value,
    path: path === undefined ? undefined : `${path}[${index}]`,
  }));

const entriesOf = (
  object: object,
  path: string | undefined,
  knownKeys: ReadonlySet<string>,
): Place[] =>
  Object.entries(object).map(([key, value]) =>
    path !== undefined && (knownKeys.has(key) || path === 'metadata')
      ? { value, path: path === '' ? key : `${path}.${key}` }
      : { value, path: undefined, unknownKey: key },
  );

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
    else if (typeof value === 'object' && value !== null) {
      const inside = Array.isArray(value)
        ? itemsOf(value, path)
        : entriesOf(value, path, knownKeys);
      for (const place of inside.toReversed()) left.push(place);
    }
  }
};

export const textsOf = (value: unknown): string[] => {
  const texts: string[] = [];
  eachText(value, undefined, new Set(), (text) => texts.push(text));
  return texts;
};

/** A client mends the first ones first. */
export const DETAILS_MAX = 100;

export type Invalid = { ok: false; details: string[] };

export const BODY_NOT_OBJECT = 'the body must be a JSON object';

export const invalid = (...details: string[]): Invalid => ({ ok: false, details });

/** The required leaves of the objects that are required themselves (gaps §3). */
const CARD_LEAVES = ['number', 'holderName', 'expiryMonth', 'expiryYear'].map(
  (name) => `paymentMethod.card.${name}`,
);
const LEAVES: Readonly<Record<string, readonly string[]>> = {
  paymentMethod: ['paymentMethod.type', ...CARD_LEAVES],
  'paymentMethod.card': CARD_LEAVES,
};

/** One detail per field, in the contract's order. A card is only required where the type is CARD. */
export const detailsOf = (issues: readonly z.core.$ZodIssue[]): string[] => {
  const wordings = new Map<string, string>();
  for (const { path, message } of issues) {
    const field = fieldName(path);
    const typeIsWrong = (wordings.get('paymentMethod.type') ?? REQUIRED) !== REQUIRED;
    if (field === 'paymentMethod.card' && message === REQUIRED && typeIsWrong) continue;
    const named = message === REQUIRED ? (LEAVES[field] ?? [field]) : [field];
    for (const name of named) if (!wordings.has(name)) wordings.set(name, message);
  }
  return [...wordings].slice(0, DETAILS_MAX).map(([field, wording]) => `${field} ${wording}`);
};

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
