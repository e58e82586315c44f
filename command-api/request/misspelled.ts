/**
 * Names in a create that are a field's but for upper and lower case, `_` or `-` (gaps §3). Ignored as
 * unknown, `capturenow` would make an authorization of a sale without a word.
 */
import { DETAILS_MAX, type Invalid, invalid } from './invalid.ts';
import type { JsonObject } from './json.ts';

const plain = (name: string): string => name.replace(/[_-]/g, '').toLowerCase();

/** Makes what tells the fields of a contract that a body misspells, in the order of the contract. */
export const misspellingsOf = (fields: readonly string[]): ((body: JsonObject) => string[]) => {
  const known = new Set(fields);
  const byPlain = new Map(fields.map((field) => [plain(field), field]));
  return (body) => {
    const unknown = Object.keys(body).filter((name) => !known.has(name));
    const meant = new Set(unknown.map((name) => byPlain.get(plain(name))));
    return fields.filter((field) => meant.has(field));
  };
};

const isAbout = (detail: string, field: string): boolean =>
  detail.startsWith(field) && /^[ .[]/.test(detail.slice(field.length));

/** One entry for each misspelt field, before all that is wrong with the other fields. */
export const asMisspelled = (fields: readonly string[], others: readonly string[]): Invalid => {
  const rest = others.filter((detail) => !fields.some((field) => isAbout(detail, field)));
  const details = [...fields.map((field) => `${field} is misspelled`), ...rest];
  return invalid(...details.slice(0, DETAILS_MAX));
};
