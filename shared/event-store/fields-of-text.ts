/**
 * The fields that a verification needs of a stored text, by one pattern for texts as this code writes them
 * and by `JSON.parse` for any other one: an amount is a number, and not an object with forty fields to make.
 * Both give the same, and the pattern fits no text that is not JSON.
 */
import { jsonFieldsOf } from '../runtime/json-fields.ts';

/** A longer text is parsed: a pattern takes memory for what it has not decided yet. */
const CHARACTERS_MAX = 16_384;

const TEXT = '[^"\\\\\\0-\\x1f]*';
/** Of a value that is only passed; a name with an escape in it might be one of those that count. */
const WITH_ESCAPES = `${TEXT}(?:\\\\(?:["\\\\/bfnrt]|u[0-9a-fA-F]{4})${TEXT})*`;
const INTEGER = '(0|[1-9][0-9]{0,14})';
const NUMBER = '-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?(?:[eE][+-]?[0-9]+)?';
const SCALAR = `"${WITH_ESCAPES}"|${NUMBER}|true|false|null`;
/** Levels of lists and objects in a field of an event's data: an address is in the details of a create. */
const DEPTH = 3;

/** Any JSON value up to a depth. A comma belongs to the item before it, so that nothing fits in two ways. */
const anyValue = (depth: number): string => {
  if (depth === 0) return `(?:${SCALAR})`;
  const inner = anyValue(depth - 1);
  const object = `\\{(?:"${TEXT}":${inner}(?:,(?=")|(?=\\})))*\\}`;
  const list = `\\[(?:${inner}(?:,(?!\\])|(?=\\])))*\\]`;
  return `(?:${object}|${list}|${SCALAR})`;
};

/** A field of the data that no sum is made of; of two equal names the last would count, so none is passed. */
const OTHER = `(?!"(?:amount|currency|operationId|releasedAmount)")"${TEXT}":${anyValue(DEPTH)}`;

const DATA = [
  `"amount":${INTEGER},(?:${OTHER},)*`,
  `"currency":"(${TEXT})",(?:${OTHER},)*`,
  `"operationId":"(${TEXT})"(?:,${OTHER})*`,
  `(?:,"releasedAmount":${INTEGER}(?:,${OTHER})*)?`,
].join('');

/** Every field of the text, in canonical order. */
const FORM = new RegExp(
  [
    `^\\{"context":${anyValue(1)},"data":\\{${DATA}\\}`,
    `"id":"(${TEXT})","previousHash":"(${TEXT})","revision":${INTEGER},"schemaVersion":${INTEGER}`,
    `"stream":"(${TEXT})","time":"${WITH_ESCAPES}","type":"(${TEXT})"\\}$`,
  ].join(','),
);

/** The fields by the pattern; undefined for a text that it does not fit. */
export const patternFieldsOf = (text: string): Record<string, unknown> | undefined => {
  const found = text.length > CHARACTERS_MAX ? null : FORM.exec(text);
  if (found === null) return undefined;
  const releasedAmount = found[4] === undefined ? undefined : Number(found[4]);
  // What a pattern finds are slices, which keep the whole text in memory; the sums keep these two.
  const [currency, operationId] = JSON.parse(`["${found[2]}","${found[3]}"]`);
  return {
    id: found[5],
    previousHash: found[6],
    revision: Number(found[7]),
    schemaVersion: Number(found[8]),
    stream: found[9],
    type: found[10],
    data: { amount: Number(found[1]), currency, operationId, releasedAmount },
  };
};

/**
 * The fields of a stored text that its place, its link and its sums are checked by; none when it is not
 * JSON, or not an object.
 */
export const fieldsOfText = (text: string): Record<string, unknown> =>
  patternFieldsOf(text) ?? jsonFieldsOf(text);
