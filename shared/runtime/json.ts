/** JSON read without rounding (schemas reject fractions and non-doubles); text without terminal controls. */
import { isUtf8 } from 'node:buffer';
import { orElse } from './error-text.ts';

/**
 * `repeated`: there where a key is given twice in one object, of which the value has the last alone; those
 * of the outermost object. `at`: how many characters are well before the break, where that is known.
 */
type ParsedJson =
  | { ok: true; value: unknown; repeated?: readonly string[] }
  | { ok: false; at?: number };

/** Only these need the slow reader; the pattern misses none. */
const NEEDS_CARE = /(?:(?<="\s*):|[[,])\s*-?(?:[0-9]{1,299}[.eE]|[0-9]{300})|\\u[dD][89a-fA-F]/;

const QUOTE = 0x22;
const COLON = 0x3a;
const BACKSLASH = 0x5c;

/** Each key has one colon that is in no string. */
const keysWritten = (text: string): number => {
  let count = 0;
  let inString = false;
  for (let at = 0; at < text.length; at += 1) {
    const sign = text.charCodeAt(at);
    if (sign === QUOTE) inString = !inString;
    else if (sign === BACKSLASH) at += 1;
    else if (sign === COLON && !inString) count += 1;
  }
  return count;
};

/** A loop: a text may be nested deeper than the stack. */
const keysKept = (value: unknown): number => {
  const inside: unknown[] = [value];
  let count = 0;
  const meet = (one: unknown): void => {
    if (typeof one === 'object') inside.push(one);
  };
  for (let next = inside.pop(); next !== undefined; next = inside.pop()) {
    if (Array.isArray(next)) next.forEach(meet);
    else
      for (const key in next as Record<string, unknown> | null) {
        count += 1;
        meet((next as Record<string, unknown>)[key]);
      }
  }
  return count;
};

const NUMBER = /^-?([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/;

class HalfASurrogate extends Error {}

const isIntegerAsWritten = (integer: string, fraction: string, exponent: number): boolean => {
  const digits = integer + fraction;
  let significant = digits.length;
  // A regular expression would take quadratic time on many zeros.
  while (digits[significant - 1] === '0') significant -= 1;
  return significant <= integer.length + exponent || /^0*$/.test(digits);
};

/** What the parser reads as no number that a schema takes. */
const NO_INTEGER = '1e999';

/** In the form that the parser does not round: an integer of too many digits is the largest there is. */
const exactly = (source: string): string => {
  const [, integer = '', fraction = '', exponent = '0'] = NUMBER.exec(source) ?? [];
  if (!isIntegerAsWritten(integer, fraction, Number(exponent))) return NO_INTEGER;
  const isPlain = integer.length === source.length;
  return isPlain && !Number.isFinite(Number(source)) ? String(Number.MAX_VALUE) : source;
};

/** The value of a number that is written with a decimal point where it must not be. */
export const WITH_POINT = Symbol('a number with a decimal point');

/** A key with its colon, another string, a bracket, or a number. */
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"(?:[ \t\n\r]*:)?|[{}[\]]|-?[0-9][0-9.eE+-]*/g;

/** Reads a text that is JSON again, token by token. Throws HalfASurrogate. */
const readCarefully = (text: string, withoutPoint: readonly string[]) => {
  const names = new Set<string>();
  const repeated: string[] = [];
  const pointed: string[] = [];
  let name = '';
  let depth = 0;
  const onToken = (token: string): string => {
    const [sign] = token;
    if (sign === '{' || sign === '[') depth += 1;
    else if (sign === '}' || sign === ']') depth -= 1;
    else if (sign !== '"') {
      if (depth === 1 && token.includes('.')) pointed.push(name);
      return exactly(token);
    } else if (depth === 1 || token.includes('\\')) {
      const string: string = JSON.parse(token.slice(0, token.lastIndexOf('"') + 1));
      if (!string.isWellFormed()) throw new HalfASurrogate();
      if (depth > 1 || !token.endsWith(':')) return token;
      name = string;
      if (names.has(name)) repeated.push(name);
      names.add(name);
    }
    return token;
  };
  const value: unknown = JSON.parse(text.replace(TOKEN, onToken));
  for (const field of withoutPoint)
    if (pointed.includes(field)) Object.assign(Object(value), { [field]: WITH_POINT });
  return { value, repeated };
};

export const textOf = (bytes: Buffer): string | undefined => {
  if (!isUtf8(bytes)) return undefined;
  const raw = bytes.toString('utf8');
  return raw.charCodeAt(0) === 0xfeff ? raw.slice(1) : raw;
};

/** RFC 8259: a body of any other white space would capture or refund the full amount. */
const WHITE = /^[ \t\n\r]*$/;

/** The engine says the place in its message alone, which may quote the text: only the number at its end is used. */
const breakOf = (error: unknown, text: string): { at?: number } => {
  const { message } = Object(error);
  if (message === 'Unexpected end of JSON input') return { at: text.length };
  const at = / JSON at position ([0-9]+)( \(line [0-9]+ column [0-9]+\))?$/.exec(message)?.[1];
  return at === undefined ? {} : { at: Number(at) };
};

/**
 * `undefined` for a blank text; not ok: none, invalid JSON, half a surrogate pair. Infinity: a fraction, or
 * beyond a double. WITH_POINT: a decimal point under an outermost key of `withoutPoint`.
 */
export const parseText = (
  text: string | undefined,
  withoutPoint: readonly string[] = [],
): ParsedJson => {
  if (text === undefined) return { ok: false };
  if (WHITE.test(text)) return { ok: true, value: undefined };
  try {
    const value: unknown = JSON.parse(text);
    const isRepeated = keysKept(value) !== keysWritten(text);
    if (!isRepeated && !NEEDS_CARE.test(text)) return { ok: true, value };
    const careful = readCarefully(text, withoutPoint);
    return isRepeated ? { ok: true, ...careful } : { ok: true, value: careful.value };
  } catch (error) {
    return { ok: false, ...breakOf(error, text) };
  }
};

/** Undefined for a text that is no JSON; numbers are rounded to doubles. */
export const jsonValueOf = (text: string): unknown => orElse(undefined, () => JSON.parse(text));

/** None when the text is no JSON object. */
export const jsonFieldsOf = (text: string): Record<string, unknown> => Object(jsonValueOf(text));

/** Control characters, line separators, and signs that turn the direction of a text. */
const CONTROL_SIGNS =
  /(?![\n\t])[\p{Cc}\u{61c}\u{200e}\u{200f}\u{2028}-\u{202e}\u{2066}-\u{2069}]/gu;

const PLAIN = /^[\t\n -~]*$/;

const escaped = (sign: string): string => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`;

/** Writes signs that a terminal obeys as `\u202e`. JSON on one line keeps its meaning. */
export const withoutControlSigns = (text: string): string =>
  PLAIN.test(text) ? text : text.replace(CONTROL_SIGNS, escaped);
