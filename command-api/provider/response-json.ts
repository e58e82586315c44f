/**
 * A provider's response as JSON (provider.md). Its amounts decide what is recorded, so no byte,
 * number or repeated key in it is guessed.
 */
import { parseText, textOf } from '../../shared/runtime/exact-json.ts';

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

/** A loop: a response may be nested deeper than the stack. */
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

/** Undefined for no UTF-8, no JSON or a key twice. A fraction is NaN, which no schema takes. */
export const parseResponse = (bytes: Buffer): unknown => {
  const text = textOf(bytes);
  const json = parseText(text);
  if (!json.ok || text === undefined) return undefined;
  return keysKept(json.value) === keysWritten(text) ? json.value : undefined;
};
