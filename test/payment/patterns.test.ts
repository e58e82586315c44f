/** The forms that ids, card numbers and texts are checked against, at their bounds (gaps §3, §4). */
import { expect, test } from '@jest/globals';
import { CARD_NUMBER, TWELVE_DIGITS, WITHOUT_TWELVE_DIGITS } from '../../shared/payment/fields.ts';

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
