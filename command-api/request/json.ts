/**
 * Reads what a request body holds (gaps §3), and every text in it, to be searched for card numbers
 * (gaps §4).
 */
import { CARD_DIGITS_MIN } from '../../shared/payment/card-digits.ts';
import type { RequestedAmount } from '../../shared/payment/commands.ts';

export type JsonObject = Record<string, unknown>;

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

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

/** Nothing deeper than 4 is ever kept; this is as deep as the stack surely reaches. */
const DEPTH_MAX = 2000;
/** Below this, a number has fewer digits than any card number. */
const NUMBER_MIN = 10 ** (CARD_DIGITS_MIN - 1);

/** Meets one text; `path` is undefined below a key that the contract does not know. */
type Meet = (text: string, path: string | undefined) => void;

const meetEntries = (
  value: object,
  path: string | undefined,
  knownKeys: ReadonlySet<string>,
  meet: Meet,
  depth: number,
): void => {
  for (const key of Object.keys(value)) {
    const known = path !== undefined && knownKeys.has(key);
    const inner = known ? (path === '' ? key : `${path}.${key}`) : undefined;
    if (!known) meet(key, undefined);
    eachText((value as Record<string, unknown>)[key], inner, knownKeys, meet, depth + 1);
  }
};

/** Meets every text, long number (also one below zero) and unknown key of a JSON value, in the order of the sender. */
export const eachText = (
  value: unknown,
  path: string | undefined,
  knownKeys: ReadonlySet<string>,
  meet: Meet,
  depth = 0,
): void => {
  if (typeof value === 'string') meet(value, path);
  else if (typeof value === 'number' && Math.abs(value) >= NUMBER_MIN) meet(String(value), path);
  else if (typeof value !== 'object' || value === null || depth > DEPTH_MAX) return;
  else if (!Array.isArray(value)) meetEntries(value, path, knownKeys, meet, depth);
  else {
    for (const [index, item] of value.entries()) {
      const inner = path === undefined ? undefined : `${path}[${index}]`;
      eachText(item, inner, knownKeys, meet, depth + 1);
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
