/** The card that the first eight digits of a number show: its brand, its lengths, its check digit (gaps §3, §4). */
import cardValidator from 'card-validator';

/** By the library's names. */
const BRANDS = {
  visa: 'VISA',
  mastercard: 'MASTERCARD',
  'american-express': 'AMEX',
  discover: 'DISCOVER',
  'diners-club': 'DINERS',
  jcb: 'JCB',
  unionpay: 'UNIONPAY',
  maestro: 'MAESTRO',
} as const;
export type CardBrand = (typeof BRANDS)[keyof typeof BRANDS];
/** The brands a merchant can accept (gaps §3). */
export const CARD_BRANDS: readonly CardBrand[] = Object.values(BRANDS);

export type CardRange = {
  /** Undefined for a scheme that is none of CARD_BRANDS, and for none at all. */
  brand: CardBrand | undefined;
  /** Of its numbers, in digits; none where the prefix is no card's. */
  lengths: readonly number[];
  /** False where its numbers need not pass the Luhn check. */
  isChecked: boolean;
};

export const PREFIX_DIGITS = 8;

/** Where a pattern of the library begins or has ended; between two of these every prefix shows the same card. */
const boundariesOf = (pattern: number | number[]): number[] => {
  const [first = 0, last = first] = [pattern].flat();
  const scale = 10 ** (PREFIX_DIGITS - String(first).length);
  return [first * scale, (last + 1) * scale];
};

const { getTypeInfo, types } = cardValidator.creditCardType;
const PATTERNS = Object.values(types).flatMap((type) => getTypeInfo(type).patterns);
const BOUNDARIES = [0, ...PATTERNS.flatMap(boundariesOf)].sort((a, b) => a - b);

/** Asked for once each: a look-up in the library costs as much as parsing the whole request. */
const ranges: CardRange[] = [];
const NO_CARD: CardRange = { brand: undefined, lengths: [], isChecked: true };

const rangeFrom = (boundary: number): CardRange => {
  const { card } = cardValidator.number(String(boundary).padStart(PREFIX_DIGITS, '0'));
  if (card === null) return NO_CARD;
  const { type, lengths } = card;
  const brand = BRANDS[type as keyof typeof BRANDS] as CardBrand | undefined;
  return { brand, lengths, isChecked: type !== 'unionpay' };
};

/** By the first eight digits as a number. */
export const cardRangeOf = (prefix: number): CardRange => {
  let [low, high] = [0, BOUNDARIES.length];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if ((BOUNDARIES[middle] ?? 0) > prefix) high = middle;
    else low = middle;
  }
  const range = ranges[low] ?? rangeFrom(BOUNDARIES[low] ?? 0);
  ranges[low] = range;
  return range;
};

export const brandOf = (number: string): CardBrand | undefined =>
  cardRangeOf(Number(number.slice(0, PREFIX_DIGITS))).brand;
