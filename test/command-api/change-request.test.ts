/** Which capture and refund requests are read, and which texts of them are searched for the card (gaps §3, §4). */
import { describe, expect, test } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { AMOUNTS } from '../../command-api/request/json.ts';
import { parseCapture, parseRefund } from '../../command-api/request/read-request.ts';
import { longRuns, runsHoldCard } from '../../shared/runtime/card-numbers.ts';
import { parseText, textOf } from '../../shared/runtime/json.ts';
import { textOf as pageOf } from '../support/project-files.ts';

const parsedText = (text: string) => {
  const parsed = parseText(textOf(Buffer.from(text)), AMOUNTS);
  if (!parsed.ok) throw new Error('not JSON');
  return parsed;
};
/** The JSON value of a text that is a whole body. */
const json = (text: string) => parsedText(text).value;

describe('gaps §4: the card number in texts of a capture or refund, by first six and last four digits', () => {
  test.each([
    ['plain', '4242424242424242', true],
    ['inside other digits and words', 'order 12 4242 4242-4242 4242, again', true],
    ['12 digits', '424242004242', true],
    ['19 digits', '4242420000000004242', true],
    ['11 digits', '42424204242', false],
    ['20 digits', '42424200000000004242', false],
    ['another end', '4242420000001111', false],
    ['letters between', '424242x000000004242', false],
  ])('%s', (_name, text, expected) => {
    expect(runsHoldCard(longRuns(text), '42424242', '4242')).toBe(expected);
  });

  test('of a token the first six may be unknown: any digits before the last four count, and others have an end', () => {
    expect(runsHoldCard(longRuns('order 1234 5678 4242'), undefined, '4242')).toBe(true);
    expect(runsHoldCard(longRuns('order 1234 5678 9012'), undefined, '4242')).toBe(false);
  });

  test('every text and every key of the body is searched', () => {
    const parsed = parseCapture({ captureAmount: 1, reason: 'a', odd: [{ deep: 'b' }] });
    expect(parsed.ok && parsed.texts).toEqual(expect.arrayContaining(['a', 'b', 'odd', 'deep']));
  });
});

const IN_MINOR_UNITS = 'must be a positive integer of minor units: 2500 is 25 dollars';

describe.each([
  ['captureAmount', parseCapture],
  ['refundAmount', parseRefund],
] as const)('gaps §3: %s', (name, parse) => {
  const requestOf = (value: unknown) => {
    const result = parse(value);
    return result.ok ? result.request : result.details;
  };

  test.each([
    ['no body', undefined, { amount: undefined }],
    ['{}', {}, { amount: undefined }],
    ['a reason alone', { reason: 'r' }, { amount: undefined, reason: 'r' }],
    ['a reason that is null', { reason: null }, { amount: undefined }],
    ['its name', { [name]: 5 }, { amount: 5 }],
    ['the alias', { amount: 5, reason: 'r', other: 1 }, { amount: 5, reason: 'r' }],
    ['both and equal', { [name]: 5, amount: 5 }, { amount: 5 }],
    ['over any maximum', { [name]: 2 ** 53 }, { amount: 'too large' }],
  ])('%s', (_case, value, request) => {
    expect(requestOf(value)).toEqual(request);
  });

  test.each<[string, unknown, string]>([
    ['null as the body', null, 'the body must be a JSON object'],
    ['an array', [5], 'the body must be a JSON object'],
    ['a number', 5, 'the body must be a JSON object'],
    ['null', { [name]: null }, `${name} must be a positive integer`],
    ['null as the alias', { amount: null }, 'amount must be a positive integer'],
    ['zero', { [name]: 0 }, `${name} must be a positive integer`],
    ['a string', { [name]: '5' }, `${name} must be a positive integer`],
    ['a fraction', json(`{"${name}":5e-1}`), `${name} must be a positive integer`],
    ['a decimal point', json(`{"${name}":25.00}`), `${name} ${IN_MINOR_UNITS}`],
    ['a decimal point and digits behind it', json(`{"${name}":5.5}`), `${name} ${IN_MINOR_UNITS}`],
    ['a decimal point in the alias', json('{"amount":25.0}'), `amount ${IN_MINOR_UNITS}`],
    ['both and unequal', { [name]: 5, amount: 6 }, `amount must be equal to ${name}`],
    ['a mistyped name', { amuont: 5 }, `${name} is required beside other fields`],
    ['a mistyped name with null', { amuont: null }, `${name} is required beside other fields`],
    ['__proto__', json('{"__proto__":{"amount":5}}'), `${name} is required beside other fields`],
    ['a reason of 256', { reason: 'x'.repeat(256) }, 'reason must be at most 255 characters'],
    ['a reason that is none', { reason: 5 }, 'reason must be a string'],
  ])('%s is refused', (_case, value, detail) => {
    expect(requestOf(value)).toEqual([detail]);
  });

  test.each([
    ['its name', `{"${name}":5,"${name}":5}`, name],
    ['its name in another spelling', `{"${name}":5,"${name.toUpperCase()}":6}`, name],
    ['the alias', '{"amount":5,"reason":"r","\\u0061mount":6}', 'amount'],
    ['a currency', `{"${name}":5,"currency":"USD","currency":"EUR"}`, 'currency'],
  ])('%s twice is refused', (_case, text, field) => {
    const { value, repeated } = parsedText(text);
    expect(parse(value, repeated)).toEqual({ ok: false, details: [`${field} stands twice`] });
  });

  test('a reason twice is the last one', () => {
    const { value, repeated } = parsedText('{"reason":"a","reason":"b"}');
    expect(parse(value, repeated)).toMatchObject({ ok: true, request: { reason: 'b' } });
  });
});

describe('the API description rejects what the service rejects', () => {
  const { schemas } = JSON.parse(pageOf('docs/openapi.json')).components;
  const validate = new Ajv2020({ strict: false });
  test.each<[string, object, boolean]>([
    ['a mistyped name', { refundAmout: 500 }, false],
    ['a mistyped name beside a reason', { refundAmout: 500, reason: 'x' }, false],
    ['nothing', {}, true],
    ['a reason alone', { reason: 'x' }, true],
    ['an amount and an unknown field', { amount: 500, note: 'x' }, true],
  ])('%s', (_name, body, isValid) => {
    expect(parseRefund(body).ok).toBe(isValid);
    expect(validate.validate(schemas.RefundRequest, body)).toBe(isValid);
    expect(validate.validate(schemas.CaptureRequest, body)).toBe(isValid);
  });

  // Else openapi-typescript takes any body, and openapi-python-client writes a module that is no Python.
  test.each(['openapi', 'openapi-audit'])(
    'no schema of %s has fields beside a choice, which generators of clients take for any type',
    (name) => {
      const all = Object.entries<object>(
        JSON.parse(pageOf(`docs/${name}.json`)).components.schemas,
      );
      const mixed = all.filter(
        ([, schema]) => 'properties' in schema && ('anyOf' in schema || 'oneOf' in schema),
      );
      expect(mixed.map(([of]) => of)).toEqual([]);
    },
  );
});
