/**
 * A card number is found in whatever clothes it comes, by every place that looks for one, and
 * digits that letters stand between are no card number (gaps §4, ADR-0124).
 */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  holdsLongNumber,
  longRuns,
  looksLikeCard,
  numberFinder,
  runsHoldCard,
  scrubCardNumbers,
  withoutCardNumbers,
  withoutLongNumbers,
} from '../../shared/runtime/card-numbers.ts';
import { CLOTHES, SEPARATED } from '../support/card-clothes.ts';

const NUMBER = '4012888888881881';

/** Every place, and whether it takes the text for one that holds the number. */
const PLACES: [name: string, finds: (text: string) => boolean][] = [
  ['a create', (text) => longRuns(text).some(numberFinder(new Set([NUMBER])))],
  ['a capture or refund', (text) => runsHoldCard(longRuns(text), '40128888', '1881')],
  ['an operator', holdsLongNumber],
  ['the record of an auditor', (text) => withoutLongNumbers(text) !== text],
  ['a topic', (text) => withoutCardNumbers(text) !== text],
  ['the metric', looksLikeCard],
  [
    'the log',
    (text) => {
      const line = JSON.stringify({ msg: text });
      const scrubbed = scrubCardNumbers(line);
      expect(Object.keys(JSON.parse(scrubbed))).toEqual(['msg']);
      return scrubbed !== line;
    },
  ],
];

describe.each(PLACES)('%s', (_place, finds) => {
  test.each(CLOTHES)('S6: finds a card number %s', (_name, dress) => {
    expect(finds(dress(NUMBER))).toBe(true);
    expect(finds(`order 7: ${dress(NUMBER)}!`)).toBe(true);
  });

  test.each(SEPARATED)('takes digits %s for no card number', (_name, dress) => {
    expect(finds(dress(NUMBER))).toBe(false);
  });

  test.each([
    '',
    'Ada Lovelace, 12 High Street, 90210 Beverly Hills',
    '2026-11-22T11:13:06.123Z',
    '22.11.2026 at 11:13:06, 15.00 USD',
    'order-12345678901',
    '北京市朝阳区建国路88号１２３４',
    'rev 12/34/56, 7',
  ])('leaves %j alone', (text) => {
    expect(finds(text)).toBe(false);
  });
});

test('twelve digits count where no letter stands between them, wherever they begin and end', () => {
  const signs = fc.constantFrom(...'0123456789-');
  const letters = fc.constantFrom(...'aZ');
  const text = fc.string({
    unit: fc.oneof({ weight: 14, arbitrary: signs }, { weight: 1, arbitrary: letters }),
    minLength: 12,
    maxLength: 60,
    size: 'max',
  });
  fc.assert(
    fc.property(text, (text) => {
      const counts = text.split(/[a-z]/i).map((part) => part.replace(/[^0-9]/g, '').length);
      expect(longRuns(text).length > 0).toBe(Math.max(...counts) >= 12);
    }),
    { numRuns: 1000 },
  );
});

describe('what is left of a text', () => {
  test.each(CLOTHES)('of a number %s are its last four digits', (_name, dress) => {
    for (const cut of [withoutLongNumbers, withoutCardNumbers]) {
      expect(cut(`a ${dress(NUMBER)}`)).toMatch(/^a \(?\.\.\.1881(\||\u20e3|\))*$/);
    }
  });

  test('a card number beside other blocks of digits is cut alone', () => {
    expect(withoutCardNumbers(`20261122-${NUMBER}, and 5555 5555 5555 4444.`)).toBe(
      '20261122-...1881, and ...4444.',
    );
  });

  test('an order number that fails the check stays for analysts', () => {
    expect(withoutCardNumbers('4012888888881882')).toBe('4012888888881882');
  });

  test('a position of the log and a time with date are typed without being cut', () => {
    for (const text of ['1234567/1234567', '2026-11-22 11:13:06 +01:00']) {
      expect(withoutLongNumbers(text)).toBe(text);
    }
  });

  test('in a line of the log escapes are gaps and stay as they are', () => {
    const line = JSON.stringify({ msg: '4012\u00018888\n8888\\1881', at: 7 });
    expect(scrubCardNumbers(line)).toBe(String.raw`{"msg":"9999\u00019999\n9999\\9999","at":7}`);
  });
});
