/** One look at a body spares the search of its texts only where that would find nothing (gaps §4). */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { parseCreate } from '../../command-api/request/payment-request.ts';
import { holdsNumberAlone } from '../../command-api/request/sole-number.ts';
import { propertyRuns } from '../support/property-runs.ts';

const example = readFileSync(join(import.meta.dirname, '../../examples/payment.json'), 'utf8');
const whole = JSON.parse(example);
const { number } = whole.paymentMethod.card;

const withDescriptor = (descriptor: unknown): string => JSON.stringify({ ...whole, descriptor });
const first = number.slice(0, 8);
const rest = number.slice(8);

describe('the number of a create stands alone in its body', () => {
  test.each([
    ['the example', example],
    ['the example in one line', JSON.stringify(whole)],
    ['eleven digits elsewhere', withDescriptor('12345678901')],
    ['a letter among eleven and one', withDescriptor('12345678901x2')],
  ])('%s: it does', (_, text) => {
    expect(holdsNumberAlone(text, number)).toBe(true);
  });

  test.each([
    ['the number again', withDescriptor(number)],
    ['the number in blocks', withDescriptor(number.replace(/(.{4})/g, '$1 - '))],
    ['the number among other digits', withDescriptor(`9${number}`)],
    ['another long number', withDescriptor('123456789012')],
    ['the number in two texts', JSON.stringify({ ...whole, more: [first, rest] })],
    ['the number as a number', JSON.stringify({ ...whole, more: Number(number) })],
    ['a number whose value is longer than its text', example.replace('{', '{"more": 1e11,')],
    ['digits that are escaped', withDescriptor('x').replace('"x"', '"\\u0034242"')],
    ['digits of another script', withDescriptor('\u0664\u0662\u0664\u0662')],
    ['the number with a digit behind it', example.replace(number, `${number}, "1`)],
    ['no number', JSON.stringify({ ...whole, paymentMethod: {} })],
    ['no text', ''],
    ['a very long text', withDescriptor(' '.repeat(5000))],
  ])('%s: it does not', (_, text) => {
    expect(holdsNumberAlone(text, number)).toBe(false);
  });

  test('what one look tells is what the search of each text finds', () => {
    const digits = fc.constantFrom(number, first, rest, '123456789012', '1234567890', '1e11', '7');
    const gaps = fc.constantFrom('', ' ', '-', 'x', '.', '\u200b', '٤', '"', '\\');
    const texts = fc.array(fc.oneof(digits, gaps), { maxLength: 4 }).map((parts) => parts.join(''));
    const numbers = fc.constantFrom(1, 1e11, 4242424242424, 1.5);
    const bodies = fc.record({
      descriptor: fc.oneof({ weight: 3, arbitrary: texts }, fc.constant('shop')),
      merchantReference: fc.oneof(texts, fc.constant('order')),
      more: fc.oneof(texts, numbers, fc.array(fc.oneof(texts, numbers), { maxLength: 3 })),
    });
    let alone = 0;
    fc.assert(
      fc.property(bodies, (body) => {
        const value = { ...whole, ...body };
        const text = JSON.stringify(value);
        if (!holdsNumberAlone(text, number)) return;
        alone += 1;
        expect(parseCreate(value, undefined, text)).toEqual(parseCreate(value));
      }),
      { numRuns: propertyRuns(500) },
    );
    expect(alone).toBeGreaterThan(3);
  });
});
