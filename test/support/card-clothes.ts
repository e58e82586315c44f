/**
 * The clothes that a card number may come in (gaps §4): one table for every place that looks for
 * card numbers. Each entry dresses a number of 16 digits.
 */
type Dress = (number: string) => string;

const between =
  (gap: string): Dress =>
  (number) =>
    number.replace(/(\d{4})(?=\d)/g, `$1${gap}`);

/** Digits of a script whose zero has this code point. */
const script =
  (zero: number): Dress =>
  (number) =>
    number.replace(/\d/g, (digit) => String.fromCodePoint(zero + Number(digit)));

export const CLOTHES: [name: string, dress: Dress][] = [
  ['plain', (number) => number],
  ['with spaces', between(' ')],
  ['with several spaces', between('   ')],
  ['with dashes', between('-')],
  ['with dots', between('.')],
  ['with slashes', between('/')],
  ['with underscores', between('_')],
  ['with commas', between(', ')],
  ['with line breaks', between('\n')],
  ['with invisible characters', between('\u200b')],
  ['with other dashes and spaces', between('\u2013\u00a0\u2212')],
  ['with symbols', between(' + € ★ ')],
  ['with a sign after every digit', (number) => number.replace(/\d/g, '$&|')],
  ['in brackets, with combining marks', (number) => number.replace(/\d/g, '($&\u20e3)')],
  ['in full-width digits', script(0xff10)],
  ['in Arabic digits', script(0x0660)],
  ['in Persian digits', script(0x06f0)],
  ['in Devanagari digits', script(0x0966)],
  ['in mathematical bold digits', script(0x1d7ce)],
  ['in mathematical monospace digits', script(0x1d7f6)],
  ['in full-width digits with dots', (number) => between('\uff0e')(script(0xff10)(number))],
  [
    'in scripts of all kinds',
    (number) => `${script(0x0660)(number.slice(0, 7))}·${number.slice(7)}`,
  ],
  [
    'in superscripts',
    (number) => number.replace(/\d/g, (digit) => '⁰¹²³⁴⁵⁶⁷⁸⁹'.charAt(Number(digit))),
  ],
];

/** What is no run of digits: letters stand between them. */
export const SEPARATED: [name: string, dress: Dress][] = [
  ['with letters', between('x')],
  ['with letters of another script', between('ж')],
  ['with Chinese characters', between('号')],
  ['with words and spaces', between(' or ')],
];
