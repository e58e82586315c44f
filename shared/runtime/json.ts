/**
 * JSON read without rounding (every schema rejects a number that is no integer, or no double), and texts
 * written without signs that a terminal obeys.
 */
import { isUtf8 } from 'node:buffer';

/** `at`: how many characters are well before the break, where that is known. */
type ParsedJson = { ok: true; value: unknown } | { ok: false; at?: number };

/** Only these need the slow reader; the pattern misses none. */
const NEEDS_CARE = /(?:(?<="\s*):|[[,])\s*-?[0-9]+(?:[.eE]|[0-9]{300})|\\u[dD][89a-fA-F]/;

const NUMBER = /^-?([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/;

class HalfASurrogate extends Error {}

const isIntegerAsWritten = (integer: string, fraction: string, exponent: number): boolean => {
  const digits = integer + fraction;
  let significant = digits.length;
  // A regular expression would take quadratic time on many zeros.
  while (digits[significant - 1] === '0') significant -= 1;
  return significant <= integer.length + exponent || /^0*$/.test(digits);
};

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

// TypeScript does not know the reviver's third argument yet.
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
  // A reviver meets the outermost object last.
  for (const [holder, key] of pointed)
    if (holder === whole) Object.assign(holder, { [key]: Number.NaN });
  return whole;
};

export const textOf = (bytes: Buffer): string | undefined => {
  if (!isUtf8(bytes)) return undefined;
  const raw = bytes.toString('utf8');
  return raw.charCodeAt(0) === 0xfeff ? raw.slice(1) : raw;
};

/** RFC 8259: a body of any other white space would capture or refund the full amount. */
const WHITE = /^[ \t\n\r]*$/;

/** The engine's message may quote the text: of it only the number at its end is used. */
const breakOf = (error: unknown, text: string): { at?: number } => {
  const { message } = Object(error);
  if (message === 'Unexpected end of JSON input') return { at: text.length };
  const at = / JSON at position ([0-9]+)( \(line [0-9]+ column [0-9]+\))?$/.exec(message)?.[1];
  return at === undefined ? {} : { at: Number(at) };
};

/**
 * `undefined` for a blank text; not ok: none, invalid JSON, half a surrogate pair. NaN stands for a
 * fraction, and for a decimal point under an outermost key of `withoutPoint`; Infinity for a number
 * beyond a double.
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
  } catch (error) {
    return { ok: false, ...breakOf(error, text) };
  }
};

/** None when the text is no JSON object. */
export const jsonFieldsOf = (text: string): Record<string, unknown> => {
  try {
    return Object(JSON.parse(text));
  } catch {
    return {};
  }
};

/** Control characters, line separators, and signs that turn the direction of a text. */
const CONTROL_SIGNS =
  /(?![\n\t])[\p{Cc}\u{61c}\u{200e}\u{200f}\u{2028}-\u{202e}\u{2066}-\u{2069}]/gu;

const PLAIN = /^[\t\n -~]*$/;

const escaped = (sign: string): string => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** Writes signs that a terminal obeys as `\u202e`. JSON on one line keeps its meaning. */
export const withoutControlSigns = (text: string): string =>
  PLAIN.test(text) ? text : text.replace(CONTROL_SIGNS, escaped);
