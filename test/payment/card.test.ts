/** Card data: what is kept of it, and that the rest cannot be printed (gaps §3, §4). */
import { format, inspect } from 'node:util';
import { describe, expect, test } from '@jest/globals';
import cardValidator from 'card-validator';
import fc from 'fast-check';
import {
  brandOf,
  CARD_BRANDS,
  type CardBrand,
  type CardInput,
  CardSecret,
  maskCard,
  maskToken,
  type TokenCard,
  type TokenInput,
} from '../../shared/payment/card.ts';
import {
  CARD_NUMBER,
  type MaskedCard,
  maskedCard,
  requestCard,
  TWELVE_DIGITS,
  WITHOUT_TWELVE_DIGITS,
} from '../../shared/payment/fields.ts';
import { holdsKnownCard } from '../../shared/runtime/card-numbers.ts';
import { CARD_KEPT } from '../support/payment-events.ts';
import { propertyRuns } from '../support/property-runs.ts';
import { JANE } from '../support/provider-operations.ts';

const cardWith = (fields: Partial<CardInput>): CardInput => ({
  number: '4242424242424242',
  ...JANE,
  ...fields,
});

/** Numbers that the schemes publish for tests, or that lie in a range of theirs. */
const NUMBERS: Record<CardBrand, string[]> = {
  VISA: ['4111111111111111', '4222222222222', '4917610000000000003', '400000000000'],
  MASTERCARD: ['5555555555554444', '5105105105105100', '2221000000000009', '2720999999999996'],
  AMEX: ['378282246310005', '341111111111111'],
  DISCOVER: ['6011111111111117', '6445644564456445', '6500000000000002', '6011000000000000003'],
  DINERS: ['30569309025904', '36227206271667', '38520000023237', '3056930009020004'],
  JCB: ['3530111333300000', '3566002020360505', '3528000000000007', '3589000000000000003'],
  UNIONPAY: ['6200000000000005', '6205500000000000004', '8171999927660000'],
  MAESTRO: ['6759649826438453', '501800000000', '6799990100000000019', '6304000000000000'],
};

describe('gaps §3: the brand is the one that the number shows', () => {
  test.each(CARD_BRANDS.flatMap((brand) => NUMBERS[brand].map((number) => [number, brand])))(
    '%s shows %s',
    (number, brand) => {
      expect(brandOf(number)).toBe(brand);
    },
  );

  test.each([
    ['a scheme that is none of the eight', '2200000000000004'],
    ['a number of no scheme', '9999999999999999'],
    ['zeros', '000000000000'],
  ])('%s shows none', (_title, number) => {
    expect(brandOf(number)).toBeUndefined();
  });

  test('a number that fails the Luhn check still shows its brand', () => {
    expect(brandOf('4242424242424241')).toBe('VISA');
  });
});

describe("gaps §4: a card number is known by prefix, length and check digit, as the library's ranges say", () => {
  const digits = (length: object) =>
    fc.string({ unit: fc.constantFrom(...'0123456789'), ...length });
  const { getTypeInfo, types } = cardValidator.creditCardType;
  const prefixes = Object.values(types)
    .flatMap((type) => getTypeInfo(type).patterns)
    .flatMap((pattern) => [pattern].flat())
    .flatMap((prefix) => [prefix - 1, prefix, prefix + 1].map(String));
  const number = fc.oneof(
    digits({ minLength: 12, maxLength: 19 }),
    fc
      .tuple(fc.constantFrom(...prefixes), digits({ minLength: 11, maxLength: 18 }))
      .map(([prefix, rest]) => (prefix + rest).slice(0, 19)),
  );

  test('whatever the number', () => {
    fc.assert(
      fc.property(number, (number) => {
        const { card, isValid } = cardValidator.number(number);
        expect(holdsKnownCard(number)).toBe(isValid);
        const brand = card?.type
          .replace('american-express', 'amex')
          .replace(/-.*/, '')
          .toUpperCase();
        expect(brandOf(number)).toBe(CARD_BRANDS.find((one) => one === brand));
      }),
      { numRuns: propertyRuns(3000) },
    );
  });

  test('with the check digit of another it is none', () => {
    const numbers = ['4242424242424242', '4242424242424241', '9999999999999999'];
    expect(numbers.map(holdsKnownCard)).toEqual([true, false, false]);
  });
});

describe('gaps §4: the one masked form', () => {
  test.each([
    ['Visa of 16 digits', '4242424242424242', '42424242', '4242'],
    ['Mastercard of 16 digits', '5555555555554444', '55555555', '4444'],
    ['Mastercard of the 2 series', '2223003122003222', '22230031', '3222'],
    ['Visa of 13 digits', '4222222222222', '422222', '2222'],
    ['Visa of 19 digits', '4917610000000000003', '491761', '0003'],
    ['Visa of 12 digits', '400000000000', '400000', '0000'],
    ['Amex', '378282246310005', '378282', '0005'],
    ['Discover', '6011111111111117', '601111', '1117'],
    ['Diners', '30569309025904', '305693', '5904'],
    ['JCB', '3530111333300000', '353011', '0000'],
    ['UnionPay', '6200000000000005', '620000', '0005'],
    ['Maestro of 12 digits', '501800000000', '501800', '0000'],
    ['Maestro of 19 digits', '6799990100000000019', '679999', '0019'],
    ['no scheme, 16 digits', '9999999999999999', '999999', '9999'],
  ])('%s', (_title, number, bin, last4) => {
    expect(maskCard(cardWith({ number }))).toMatchObject({ bin, last4 });
  });

  test('the whole form, which the event schema takes', () => {
    const masked = maskCard(cardWith({ cvv: '123' }));
    expect(masked).toEqual({ ...CARD_KEPT, holderName: 'Jane Doe' });
    expect(maskedCard.parse(masked)).toEqual(masked);
  });

  test('without a CVV it says so', () => {
    expect(maskCard(cardWith({})).cvvPresentDuringAttempt).toBe(false);
  });

  test('S3, S4: another CVV and other hidden digits change nothing', () => {
    const one = maskCard(cardWith({ number: '4242424200004242', cvv: '123' }));
    const other = maskCard(cardWith({ number: '4242424299994242', cvv: '9876' }));
    expect(other).toEqual(one);
  });

  test('the brand of the number comes before the one given', () => {
    expect(maskCard(cardWith({ brand: 'AMEX' })).brand).toBe('VISA');
  });

  test('the brand given, where the number shows none', () => {
    expect(maskCard(cardWith({ number: '9999999999999999', brand: 'HOUSE' })).brand).toBe('HOUSE');
  });

  test('no brand where there is none', () => {
    expect(maskCard(cardWith({ number: '9999999999999999' })).brand).toBeUndefined();
  });
});

describe('gaps §14: a token in place of the number', () => {
  test('is 1 to 255 letters, digits, _ and -', () => {
    const isToken = (text: string) => requestCard.shape.token.safeParse(text).success;
    expect(['tok_1-A', 'a'.repeat(255)].every(isToken)).toBe(true);
    expect(['', 'a'.repeat(256), ' tok', 'tok\n', 'tök'].some(isToken)).toBe(false);
  });

  const given = { token: 'tok_1', holderName: 'Jane Doe', brand: 'HOUSE' };
  const described = { last4: '4242', expiryMonth: '12', expiryYear: '2030' };
  const known = { bin: '42424242', brand: 'VISA' } as const;
  test.each<[string, Partial<TokenCard>, TokenInput, Partial<MaskedCard>]>([
    ['its bin and its brand, not the brand given', known, given, known],
    ['the brand given, where it tells none', {}, given, { brand: 'HOUSE' }],
    ['neither, where there is none', {}, { ...given, brand: undefined }, {}],
  ])('is kept as its provider describes the card, with %s', (_title, card, input, more) => {
    const masked = { ...described, holderName: 'Jane Doe', cvvPresentDuringAttempt: false };
    expect(maskToken({ ...described, ...card }, input)).toEqual({ ...masked, ...more });
  });
});

describe('gaps §4: the secret prints as [card]', () => {
  const card = cardWith({ number: '4000000000009995', cvv: '737' });
  const secret = new CardSecret(card);

  test('only reveal() gives it', () => {
    expect(secret.reveal()).toEqual(card);
  });

  const printed: [string, () => string, string][] = [
    ['JSON.stringify', () => JSON.stringify({ secret }), '{"secret":"[card]"}'],
    ['String()', () => String(secret), '[card]'],
    ['a template', () => `of ${secret}`, 'of [card]'],
    ['a joined list', () => [secret, secret].join(), '[card],[card]'],
    ['inspect', () => inspect(secret), '[card]'],
    ['inspect, deep in an object', () => inspect({ a: [secret] }), '{ a: [ [card] ] }'],
    ['format %s', () => format('%s', secret), '[card]'],
    ['format %o', () => format('%o', secret), '[card]'],
    ['format %j', () => format('%j', secret), '"[card]"'],
    ['Object.keys', () => JSON.stringify(Object.keys(secret)), '[]'],
    ['own property names', () => JSON.stringify(Object.getOwnPropertyNames(secret)), '[]'],
    ['a spread copy', () => JSON.stringify({ ...secret }), '{}'],
    ['a structured clone', () => JSON.stringify(structuredClone(secret)), '{}'],
    ['an error of it', () => new Error(`no answer for ${secret}`).message, 'no answer for [card]'],
  ];
  test.each(printed)('%s', (_title, print, text) => {
    expect(print()).toBe(text);
  });

  test('inspect that looks at all there is, past the custom form', () => {
    const shown = inspect(secret, { showHidden: true, customInspect: false, depth: null });
    expect(shown).toContain('CardSecret');
    expect(shown).not.toMatch(/4000|9995|737|Jane/);
  });
});

const digits = (count: number): string => '4'.repeat(count);

test.each([
  [digits(12), true],
  [digits(19), true],
  [digits(11), false],
  [digits(20), false],
  [`x${digits(16)}`, false],
  [`${digits(16)}x`, false],
  ['x'.repeat(16), false],
])('the card number %s is accepted: %s', (text, isAccepted) => {
  expect(CARD_NUMBER.test(text)).toBe(isAccepted);
});

test.each([
  [digits(12), true],
  [`order ${digits(12)} of May`, true],
  [`order\n${digits(13)}`, true],
  [digits(11), false],
  [`${digits(11)} ${digits(11)}`, false],
  ['a text of words alone', false],
])('%j holds twelve digits: %s', (text, isHeld) => {
  expect(TWELVE_DIGITS.test(text)).toBe(isHeld);
  expect(WITHOUT_TWELVE_DIGITS.test(text)).toBe(!isHeld);
});
