/**
 * A verification takes the fields of most texts by a pattern. Whatever the pattern fits, `JSON.parse`
 * reads alike: else somebody who computes hashes could write what only one of the two sees.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import canonicalize from 'canonicalize';
import fc from 'fast-check';
import { encode } from '../../shared/event-store/codec.ts';
import { fieldsOfText, patternFieldsOf } from '../../shared/event-store/fields-of-text.ts';
import { authorized, created, newEvent } from '../support/payment-events.ts';
import { propertyRuns } from '../support/property-runs.ts';

const FOLDER = new URL('./stored-events/', import.meta.url);
const FROZEN = readdirSync(FOLDER).filter((name) => name.endsWith('.json'));
const frozenText = (name: string): string =>
  String(canonicalize(JSON.parse(readFileSync(new URL(name, FOLDER), 'utf8')).stored));

/** What a verification takes of an event, from an object that was parsed. */
const taken = ({ data, ...named }: Record<string, unknown>) => {
  const { id, previousHash, revision, schemaVersion, stream, type } = named;
  const { amount, currency, operationId, releasedAmount } = Object(data);
  const sums = { amount, currency, operationId, releasedAmount };
  return { id, previousHash, revision, schemaVersion, stream, type, data: sums };
};
/** Throws where the pattern fits what is not JSON. */
const expectAlike = (text: string): void => {
  const found = patternFieldsOf(text);
  if (found !== undefined) expect(found).toEqual(taken(JSON.parse(text)));
};

const texts = encode('payment-pay_1', 'none', [newEvent(created()), newEvent(authorized())]).map(
  (one) => one.text,
);
const [createdText = '', authorizedText = ''] = texts;

describe('the pattern', () => {
  test.each(texts)('fits what this code writes: %#', (text) => {
    expect(patternFieldsOf(text)).toEqual(taken(JSON.parse(text)));
  });

  test('fits most types of event, a sale and a capture of a part among them', () => {
    const fitting = FROZEN.filter((name) => patternFieldsOf(frozenText(name)) !== undefined);
    expect(fitting).toEqual(
      expect.arrayContaining(['PaymentCreated.v1.json', 'PaymentCaptured.v1.json']),
    );
    expect(fitting.length).toBeGreaterThan(10);
  });

  test.each(FROZEN)('reads %s as a parser does, or not at all', (name) => {
    expectAlike(frozenText(name));
    expect(taken(fieldsOfText(frozenText(name)))).toEqual(taken(JSON.parse(frozenText(name))));
  });

  test.each([
    ['an amount that comes twice', '"currency"', '"amount":1,"currency"'],
    ['an amount before the one in its place', '"amount"', '"amount":1,"amount"'],
    ['an operation that comes twice', '"operationId"', '"operationId":"op_2","operationId"'],
    ['a name with an escape in it', '"amount"', '"\\u0061mount":1,"amount"'],
    ['an escape in a text', '"currency":"', '"currency":"\\n'],
    ['an amount below nothing', '"amount":', '"amount":-'],
    ['an amount with zeros before it', '"amount":', '"amount":00'],
    ['an amount that no number is', '"amount":', '"amount":99999999999999999'],
    ['a comma after the last item', '},"id"', ',},"id"'],
    ['a space', '{"context"', '{ "context"'],
    ['a line break within a text', '"currency":"', '"currency":"\n'],
    ['another object behind it', '"}', '"}{}'],
    ['data that is a list', '"data":{', '"data":[{'],
  ])('leaves %s to the parser', (_what, from, to) => {
    const text = authorizedText.replace(from, to);
    expect(text).not.toBe(authorizedText);
    expect(patternFieldsOf(text)).toBeUndefined();
  });

  test('leaves a long text to the parser', () => {
    const long = createdText.replace('"data":{', `"data":{"a":"${'x'.repeat(20_000)}",`);
    expect(patternFieldsOf(long)).toBeUndefined();
    expect(fieldsOfText(long)).toEqual(JSON.parse(long));
  });

  test('what is not JSON has no fields', () => {
    for (const text of [`${createdText}x`, createdText.slice(0, -1), '', 'null', '7'])
      expect(Object.keys(fieldsOfText(text))).toEqual([]);
  });

  test('takes an object that is nested in data for none of its fields', () => {
    const nested = authorizedText.replace(
      '"currency"',
      '"b":{"amount":7,"list":[1,[],{}]},"currency"',
    );
    expect(patternFieldsOf(nested)).toEqual(taken(JSON.parse(nested)));
    expect(patternFieldsOf(nested)).toBeDefined();
  });
});

test('a text that was changed anywhere reads as a parser reads it, or not at all', () => {
  const piece = fc.constantFrom(
    ...'{}[]",:\\-0127eE. \nanu',
    '"amount":1,',
    '"":{}',
    '[]',
    ',',
    '😀',
  );
  const change = fc.record({ at: fc.nat(5000), taken: fc.nat(12), piece });
  const text = fc.constantFrom(...texts, ...FROZEN.map(frozenText));
  fc.assert(
    fc.property(text, fc.array(change, { maxLength: 3 }), (original, changes) => {
      const changed = changes.reduce((now, { at, taken: count, piece: put }) => {
        const place = at % now.length;
        return now.slice(0, place) + put + now.slice(place + count);
      }, original);
      expectAlike(changed);
    }),
    { numRuns: propertyRuns(2000) },
  );
});
