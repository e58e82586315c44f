/**
 * Canonical JSON (RFC 8785): the form in which events are hashed and repeated requests recognised.
 * No other file imports the library; test/runtime/canonical-json.test.ts compares it with
 * the implementation of the RFC's author.
 */
import { configure } from 'safe-stable-stringify';

/** Events and requests are a few levels deep. Only a store that was tampered with holds deeper ones. */
const DEPTH_MAX = 1000;
const stringify = configure({ strict: true, maximumDepth: DEPTH_MAX });

/** The escape of half a surrogate pair. An escaped backslash before `ud…` is not one, hence pairs. */
const LONE_SURROGATE = /(?<!\\)(?:\\\\)*\\ud[89a-f]/;

/**
 * The canonical JSON of a value. Throws for a value without one: NaN, infinity, half a surrogate pair, a
 * circular reference.
 */
export const canonicalJson = (value: unknown): string => {
  const json = String(stringify(value));
  // Nearly no text holds `\ud`, and this search is much faster than the pattern.
  if (json.includes('\\ud') && LONE_SURROGATE.test(json))
    throw new Error('half a surrogate pair has no canonical form');
  return json;
};
