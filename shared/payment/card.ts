/** The card of a number's first eight digits (gaps §3); the part that is kept and the secret part (gaps §4). */
import { inspect } from 'node:util';
import cardValidator from 'card-validator';
import type { MaskedCard, RequestCard, ThreeDSecure } from './fields.ts';

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

/** A card of a request, its shape checked already. */
export type CardInput = Omit<RequestCard, 'token'>;
/** A token of the provider's own in place of number, expiry and CVV (gaps §14). */
export type TokenInput = Pick<RequestCard, 'token' | 'holderName' | 'brand' | 'threeDSecure'>;

/** The provider's description of a token's card; `bin` has 6 or 8 digits. */
export type TokenCard = Pick<MaskedCard, 'bin' | 'last4' | 'expiryMonth' | 'expiryYear'> & {
  /** Undefined for one that is none of CARD_BRANDS. */
  brand?: CardBrand | undefined;
};

/** The whole card, or its token, for one provider call. JSON, strings and inspect show `[card]`. */
export class CardSecret {
  readonly #card: CardInput | TokenInput;

  constructor(card: CardInput | TokenInput) {
    this.#card = card;
  }

  /** For the one call that sends it to the provider. */
  reveal(): CardInput | TokenInput {
    return this.#card;
  }

  toJSON(): string {
    return '[card]';
  }

  toString(): string {
    return '[card]';
  }

  [inspect.custom](): string {
    return '[card]';
  }
}

const withoutCryptogram = (given: ThreeDSecure | undefined): MaskedCard['threeDSecure'] => {
  if (given === undefined) return undefined;
  const { cryptogram: _, ...kept } = given;
  return kept;
};

/** The masked form of a token's card, as its provider described it; the merchant names the holder. */
export const maskToken = (
  { bin, last4, expiryMonth, expiryYear, brand }: TokenCard,
  card: TokenInput | CardInput,
): MaskedCard => ({
  bin,
  last4,
  holderName: card.holderName,
  cvvPresentDuringAttempt: 'cvv' in card && card.cvv !== undefined,
  expiryMonth,
  expiryYear,
  brand: brand ?? card.brand,
  threeDSecure: withoutCryptogram(card.threeDSecure),
});

/** The one masked form of a card (gaps §4). The number's brand wins over that of the request. */
export const maskCard = (card: CardInput, brand = brandOf(card.number)): MaskedCard => {
  const { number, expiryMonth, expiryYear } = card;
  const isLong = number.length === 16 && (brand === 'VISA' || brand === 'MASTERCARD');
  const bin = number.slice(0, isLong ? 8 : 6);
  return maskToken({ bin, last4: number.slice(-4), expiryMonth, expiryYear, brand }, card);
};
