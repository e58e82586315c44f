/** Every text of a request's body, for whoever looks for card numbers in it (gaps §4). */
import { CARD_DIGITS_MIN } from '../../shared/payment/card.ts';

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

/** Meets every text, long number and unknown key of a JSON value, in the order of the sender. */
export const eachText = (
  value: unknown,
  path: string | undefined,
  knownKeys: ReadonlySet<string>,
  meet: Meet,
  depth = 0,
): void => {
  if (typeof value === 'string') meet(value, path);
  else if (typeof value === 'number' && value >= NUMBER_MIN) meet(String(value), path);
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
