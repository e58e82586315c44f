/**
 * Splits a card into the part that may be kept and the part that lives in memory for one provider
 * call (gaps §4). Nothing here is ever stored, logged or hashed.
 */
import { inspect } from 'node:util';
import { brandOf, type CardBrand } from './card-ranges.ts';
import type { MaskedCard, ThreeDSecure } from './fields.ts';

/** Of the results of 3-D Secure the cryptogram is not kept (gaps §21). */
type Authenticated = { threeDSecure?: ThreeDSecure | undefined };

/** A card of a request, its shape checked already. */
export type CardInput = Authenticated &
  Pick<MaskedCard, 'holderName' | 'expiryMonth' | 'expiryYear' | 'brand'> & {
    number: string;
    cvv?: string | undefined;
  };

/** A token of the provider's own in place of number, expiry and CVV (gaps §14). */
export const CARD_TOKEN = /^[A-Za-z0-9_-]{1,255}$/;

export type TokenInput = Authenticated &
  Pick<MaskedCard, 'holderName' | 'brand'> & { token: string };

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

/** The one masked form of a card (gaps §4). The number's brand wins over that of the request. */
export const maskCard = (card: CardInput, numberBrand = brandOf(card.number)): MaskedCard => {
  const { number, holderName, cvv, expiryMonth, expiryYear } = card;
  const longBin = number.length === 16 && (numberBrand === 'VISA' || numberBrand === 'MASTERCARD');
  return {
    bin: number.slice(0, longBin ? 8 : 6),
    last4: number.slice(-4),
    holderName,
    cvvPresentDuringAttempt: cvv !== undefined,
    expiryMonth,
    expiryYear,
    brand: numberBrand ?? card.brand,
    threeDSecure: withoutCryptogram(card.threeDSecure),
  };
};

/** The masked form of a token's card, as its provider described it; the merchant names the holder. */
export const maskToken = (
  { bin, last4, expiryMonth, expiryYear, brand }: TokenCard,
  card: TokenInput,
): MaskedCard => ({
  bin,
  last4,
  holderName: card.holderName,
  cvvPresentDuringAttempt: false,
  expiryMonth,
  expiryYear,
  brand: brand ?? card.brand,
  threeDSecure: withoutCryptogram(card.threeDSecure),
});
