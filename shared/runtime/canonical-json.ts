/** Canonical JSON (RFC 8785), by which events are hashed and repeated requests recognised. */
import { configure } from 'safe-stable-stringify';

const DEPTH_MAX = 1000;
const stringify = configure({ strict: true, maximumDepth: DEPTH_MAX });

/** Half a surrogate pair, in contrast to an escaped backslash before `ud…`. */
const LONE_SURROGATE = /(?<!\\)(?:\\\\)*\\ud[89a-f]/;

/** Throws for NaN, infinity, half a surrogate pair and a circular reference. */
export const canonicalJson = (value: unknown): string => {
  const json = String(stringify(value));
  if (json.includes('\\ud') && LONE_SURROGATE.test(json))
    throw new Error('half a surrogate pair has no canonical form');
  return json;
};
