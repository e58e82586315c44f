/**
 * Canonical JSON (RFC 8785): what events are hashed as, and requests are recognised by. The library
 * is imported here alone (ADR-0095); test/runtime/canonical-json.test.ts compares it with the RFC's own one.
 */
import { configure } from 'safe-stable-stringify';

/** What is written here is a few levels deep. Deeper text, from a store that was tampered with, is cut. */
const DEPTH_MAX = 1000;
const stringify = configure({ strict: true, maximumDepth: DEPTH_MAX });

/** An escape, not a text that spells one out: the backslashes before it come in pairs. */
const LONE_SURROGATE = /(?<!\\)(?:\\\\)*\\ud[89a-f]/;

/** The text itself. Throws for half a pair of surrogates, which has no canonical form. */
export const withoutLoneSurrogate = (json: string): string => {
  // The search for a plain text spares nearly every text the pattern.
  if (json.includes('\\ud') && LONE_SURROGATE.test(json))
    throw new Error('half a surrogate pair has no canonical form');
  return json;
};

/**
 * The canonical JSON of a value. Throws for what has none: NaN, infinity, half a surrogate pair, a
 * circular reference.
 */
export const canonicalJson = (value: unknown): string =>
  withoutLoneSurrogate(String(stringify(value)));
