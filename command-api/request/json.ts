/**
 * Reads what a request body holds (gaps §3), and every text in it, to be searched for card numbers
 * (gaps §4).
 */
import { CARD_DIGITS_MIN } from '../../shared/payment/card-digits.ts';
import type { RequestedAmount } from '../../shared/payment/commands.ts';

export type JsonObject = Record<string, unknown>;

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** 25.00 is a sum in dollars more often than 25 cents, so none of these may have a decimal point (gaps §3). */
export const AMOUNTS = ['amount', 'captureAmount', 'refundAmount'];

/** Nothing deeper than this is ever read. */
const READ_DEPTH_MAX = 8;

/** A JSON value without what is `null` in its objects, which counts as absent (gaps §3). */
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

/** An amount as the rules see it: above 2^53-1 it is for them to reject (gaps §3). */
export const requestedAmount = (amount: number): RequestedAmount =>
  amount > Number.MAX_SAFE_INTEGER ? 'too large' : amount;

/** Below this, a number has fewer digits than any card number. */
const NUMBER_MIN = 10 ** (CARD_DIGITS_MIN - 1);

/** Meets one text; `path` is undefined below a key that the contract does not know. */
type Meet = (text: string, path: string | undefined) => void;

/** A value and where it stands; `unknownKey` is the key above it, where the contract does not know that. */
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
    path !== undefined && knownKeys.has(key)
      ? { value, path: path === '' ? key : `${path}.${key}` }
      : { value, path: undefined, unknownKey: key },
  );

/**
 * Meets every text, long number (also one below zero) and unknown key of a JSON value, in the order of
 * the sender. A loop, for a body may be nested deeper than the stack.
 */
export const eachText = (
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

const NO_KEYS: ReadonlySet<string> = new Set();

/** Every text of a JSON value, keys included. */
export const textsOf = (value: unknown): string[] => {
  const texts: string[] = [];
  eachText(value, undefined, NO_KEYS, (text) => texts.push(text));
  return texts;
};
