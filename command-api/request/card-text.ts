/**
 * Finds a card number in texts that would be kept (gaps §4). Spaces and dashes of every kind
 * between its digits do not hide it.
 */

const GAPS = /[\s\p{Pd}\p{Cf}\u2212]+/gu;
const NUMBER_LENGTH_MIN = 12;
const NUMBER_LENGTH_MAX = 19;

/** Whether a text holds this very number, plain or in blocks. */
export const holdsCardNumber = (text: string, number: string): boolean =>
  text.length >= number.length &&
  (text.includes(number) || text.replace(GAPS, '').includes(number));

/** No further than a number can be long: a text of digits alone is not read again and again. */
const endOfDigits = (text: string, from: number): number => {
  const last = Math.min(text.length, from + NUMBER_LENGTH_MAX);
  let end = from;
  while (end < last && text.charCodeAt(end) >= 48 && text.charCodeAt(end) <= 57) end += 1;
  return end;
};

/** Whether 12 to 19 digits of the text begin with the one and end with the other. */
const holdsMaskedNumber = (text: string, first6: string, last4: string): boolean => {
  const compact = text.length < NUMBER_LENGTH_MIN ? '' : text.replace(GAPS, '');
  for (let at = compact.indexOf(first6); at !== -1; at = compact.indexOf(first6, at + 1)) {
    const digits = compact.slice(at, endOfDigits(compact, at));
    if (digits.indexOf(last4, NUMBER_LENGTH_MIN - last4.length) !== -1) return true;
  }
  return false;
};

/**
 * Whether one of the texts holds a run of 12 to 19 digits with the payment's first six and last
 * four: on capture and refund the number itself is no longer known. `bin` may have 6 or 8 digits.
 */
export const textsHoldCard = (texts: readonly string[], bin: string, last4: string): boolean =>
  texts.some((text) => holdsMaskedNumber(text, bin.slice(0, 6), last4));

/** Nothing deeper than 4 is ever kept; this is as deep as the stack surely reaches. */
const DEPTH_MAX = 2000;
/** Below this, a number has fewer digits than any card number. */
const NUMBER_MIN = 10 ** (NUMBER_LENGTH_MIN - 1);

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
