/**
 * Reads a request body as JSON, whatever its content type says (gaps §3), and every text in it, to be
 * searched for card numbers (gaps §4). Nothing is rounded away: a number that is no integer, or that
 * no double can hold, is read as one that every schema rejects.
 */
import { isUtf8 } from 'node:buffer';
import { CARD_DIGITS_MIN } from '../../shared/payment/card-digits.ts';
import type { RequestedAmount } from '../../shared/payment/commands.ts';

export type ParsedJson = { ok: true; value: unknown } | { ok: false };

/**
 * A value that may be a fraction, has an exponent or 300 digits, or a text with half of a pair of
 * surrogates: only then is the slow reader worth its price. It may see one too many, never one too
 * few; what it looks for can also stand inside a text.
 */
const NEEDS_CARE = /(?:(?<="\s*):|[[,])\s*-?[0-9]+(?:[.eE]|[0-9]{300})|\\u[dD][89a-fA-F]/;

/** True for a text whose numbers may not be read by JSON.parse alone. */
export const needsCare = (text: string): boolean => NEEDS_CARE.test(text);

const NUMBER = /^-?([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/;

class HalfASurrogate extends Error {}

/** Whether a JSON number is an integer as it is written, before any rounding. */
const isIntegerAsWritten = (integer: string, fraction: string, exponent: number): boolean => {
  const digits = integer + fraction;
  let significant = digits.length;
  // A loop, for an expression would look again from each of many zeros that are not the last.
  while (digits[significant - 1] === '0') significant -= 1;
  return significant <= integer.length + exponent || /^0*$/.test(digits);
};

/** The number as the schemas see it: NaN when it is no integer, Infinity when it is beyond reach. */
const exactInteger = (value: number, source: string): number => {
  const [, integer = '', fraction = '', exponent = '0'] = NUMBER.exec(source) ?? [];
  if (!isIntegerAsWritten(integer, fraction, Number(exponent))) return Number.NaN;
  const plainDigits = integer.length === source.length;
  return value === Number.POSITIVE_INFINITY && plainDigits ? Number.MAX_VALUE : value;
};

const careful = (_key: string, value: unknown, { source }: { source?: string }): unknown => {
  if (typeof value === 'number' && source !== undefined) return exactInteger(value, source);
  if (typeof value === 'string' && !value.isWellFormed()) throw new HalfASurrogate();
  return value;
};

/** The compiler's library does not know the reviver's third argument yet. */
const parseWithSources = JSON.parse as (text: string, reviver: typeof careful) => unknown;

/** The text of a body without its byte order mark; undefined where the bytes are no UTF-8. */
export const textOf = (bytes: Buffer): string | undefined => {
  if (!isUtf8(bytes)) return undefined;
  const raw = bytes.toString('utf8');
  return raw.charCodeAt(0) === 0xfeff ? raw.slice(1) : raw;
};

/**
 * The value of a body's text; `undefined` for an empty or white one. Not ok: no text, invalid JSON, a
 * text that cannot be written in UTF-8. Every number in the value is as the sender wrote it: NaN
 * stands for one with a fraction, Infinity for one that only an exponent takes beyond a double.
 */
export const parseText = (text: string | undefined): ParsedJson => {
  if (text === undefined) return { ok: false };
  if (text.trim() === '') return { ok: true, value: undefined };
  try {
    const value: unknown = needsCare(text) ? parseWithSources(text, careful) : JSON.parse(text);
    return { ok: true, value };
  } catch {
    return { ok: false };
  }
};

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
