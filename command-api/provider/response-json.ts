/**
 * A provider's answer as JSON (provider.md). Its amounts decide what is recorded, so nothing in it is
 * guessed: neither which of two equal keys counts, nor what a byte or a number was meant to be.
 */
import { parseText, textOf } from '../../shared/runtime/exact-json.ts';

const QUOTE = 0x22;
const COLON = 0x3a;
const BACKSLASH = 0x5c;

/** How many keys a JSON text holds: each has one colon that is in no string. */
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

/** How many keys are left of them in the value. A loop: an answer may be nested deeper than the stack. */
const keysKept = (value: unknown): number => {
  const inside = [value];
  let count = 0;
  for (let next = inside.pop(); next !== undefined; next = inside.pop()) {
    if (typeof next !== 'object' || next === null) continue;
    const values = Object.values(next);
    if (!Array.isArray(next)) count += values.length;
    for (const value of values) if (typeof value === 'object') inside.push(value);
  }
  return count;
};

/**
 * The value of an answer; undefined where it is none: no UTF-8, no JSON, half of a surrogate pair, an
 * object with a key twice. A number with a fraction is NaN, so that no schema takes it for an integer.
 */
export const parseResponse = (bytes: Buffer): unknown => {
  const text = textOf(bytes);
  const json = parseText(text);
  if (!json.ok || text === undefined) return undefined;
  return keysKept(json.value) === keysWritten(text) ? json.value : undefined;
};
