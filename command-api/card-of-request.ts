/**
 * The card of a create: of a number at once, of a token as its provider describes it, which is
 * asked only for a new payment (gaps §4, §14).
 */
import {
  brandOf,
  type CardInput,
  maskCard,
  maskToken,
  type TokenInput,
} from '../shared/payment/card.ts';
import type { CreateCommand } from '../shared/payment/commands.ts';
import type { CommandDeps } from './deps.ts';
import type { Identities } from './idempotency.ts';
import type { CreateRequest } from './request/payment-request.ts';
import { type CommandResponse, rejection, tokenNotDescribed } from './responses.ts';

export type ShownCard = Pick<CreateCommand, 'card' | 'numberBrand'>;

export const shownCardOf = (card: CardInput): ShownCard => {
  const numberBrand = brandOf(card.number);
  return { card: maskCard(card, numberBrand), numberBrand };
};

export const describeToken = async (
  { provider }: Pick<CommandDeps, 'provider'>,
  given: TokenInput,
  merchantId: string,
): Promise<ShownCard | { response: CommandResponse }> => {
  const described = await provider.describeToken(given.token, merchantId);
  switch (described.outcome) {
    case 'DESCRIBED':
      return { card: maskToken(described, given), numberBrand: described.brand };
    case 'NOT_FOUND':
      return {
        response: rejection('INVALID_REQUEST', ['paymentMethod.card.token is not known']),
      };
    case 'UNKNOWN':
      return { response: tokenNotDescribed() };
  }
};

/** Only fields that tell cards apart without giving one away; a token's keyed hash. */
const comparableCard = (
  { fingerprintOf }: Pick<Identities, 'fingerprintOf'>,
  brand: string | null,
  shown: ShownCard | TokenInput,
) => {
  if ('token' in shown) {
    const { holderName, token } = shown;
    return { brand, holderName, tokenHash: fingerprintOf({ token }) };
  }
  const { bin, last4, holderName, expiryMonth, expiryYear } = shown.card;
  return { bin, brand, expiryMonth, expiryYear, holderName, last4 };
};

/** Two creates with equal fields are the same request (gaps §8, §14). */
export const comparableCreate = (
  identities: Pick<Identities, 'fingerprintOf'>,
  merchantId: string,
  { amountMinor: amount, currency, captureNow, details, card }: CreateRequest,
  shown: ShownCard | TokenInput,
) => ({
  merchantId,
  amount,
  currency,
  captureNow,
  details,
  card: comparableCard(identities, card.brand ?? null, shown),
});
