/**
 * JSON as its sender wrote it: nothing is rounded away. A number that is no integer, or that no double
 * can hold, is read as one that every schema rejects.
 */
import { isUtf8 } from 'node:buffer';

export type ParsedJson = { ok: true; value: unknown } | { ok: false };

/**
 * A value that may be a fraction, has an exponent or 300 digits, or a text with half of a pair of
 * surrogates: only then is the slow reader worth its price. It may see one too many, never one too
 * few; what it looks for can also stand inside a text.
 */
const NEEDS_CARE = /(?:(?<="\s*):|[[,])\s*-?[0-9]+(?:[.eE]|[0-9]{300})|\\u[dD][89a-fA-F]/;

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

const careful = (value: unknown, source: string | undefined): unknown => {
  if (typeof value === 'number' && source !== undefined) return exactInteger(value, source);
  if (typeof value === 'string' && !value.isWellFormed()) throw new HalfASurrogate();
  return value;
};

/** The compiler's library does not know the reviver's third argument yet. */
const parseWithSources = JSON.parse as (
  text: string,
  reviver: (this: object, key: string, value: unknown, context: { source?: string }) => unknown,
) => unknown;

const parseCarefully = (text: string, withoutPoint: readonly string[]): unknown => {
  const pointed: [holder: object, key: string][] = [];
  const whole = parseWithSources(text, function (key, value, { source }) {
    const isPointed = typeof value === 'number' && source?.includes('.');
    if (isPointed && withoutPoint.includes(key)) pointed.push([this, key]);
    return careful(value, source);
  });
  // Which object is the outermost is known only now: a reviver meets it last.
  for (const [holder, key] of pointed)
    if (holder === whole) Object.assign(holder, { [key]: Number.NaN });
  return whole;
};

/** The text of a body without its byte order mark; undefined where the bytes are no UTF-8. */
export const textOf = (bytes: Buffer): string | undefined => {
  if (!isUtf8(bytes)) return undefined;
  const raw = bytes.toString('utf8');
  return raw.charCodeAt(0) === 0xfeff ? raw.slice(1) : raw;
};

/** JSON's own white space (RFC 8259): of any other a capture or refund would take the full sum. */
const WHITE = /^[ \t\n\r]*$/;

/**
 * The value of a body's text; `undefined` for an empty or white one. Not ok: no text, invalid JSON, a
 * text that cannot be written in UTF-8. Every number in the value is as the sender wrote it: NaN
 * stands for one with a fraction, and for one under a key of `withoutPoint` in the outermost object
 * that is written with a decimal point; Infinity for one that only an exponent takes beyond a double.
 */
export const parseText = (
  text: string | undefined,
  withoutPoint: readonly string[] = [],
): ParsedJson => {
  if (text === undefined) return { ok: false };
  if (WHITE.test(text)) return { ok: true, value: undefined };
  try {
    const value: unknown = NEEDS_CARE.test(text)
      ? parseCarefully(text, withoutPoint)
      : JSON.parse(text);
    return { ok: true, value };
  } catch {
    return { ok: false };
  }
};
