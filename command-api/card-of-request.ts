/**
 * The card of a create as it is kept, compared and judged: of a number at once, of a token as its
 * provider describes it (gaps §4, §14). A token is described only for a new payment: a repeat is
 * recognised without it.
 */
import {
  brandOf,
  type CardInput,
  maskCard,
  maskToken,
  type TokenInput,
} from '../shared/payment/card.ts';
import type { CreateCommand } from '../shared/payment/commands.ts';
import { comparableCard, comparableCreate, comparableToken } from './create-fingerprint.ts';
import type { CommandDeps } from './deps.ts';
import type { Identities } from './idempotency.ts';
import type { CreateRequest } from './request/payment-request.ts';
import { type CommandResponse, rejection, tokenNotDescribed } from './responses.ts';

/** What a create command says of its card. */
export type ShownCard = Pick<CreateCommand, 'card' | 'numberBrand'>;

/** The card of a number, which nobody has to be asked about. */
export const shownCardOf = (card: CardInput): ShownCard => {
  const numberBrand = brandOf(card.number);
  return { card: maskCard(card, numberBrand), numberBrand };
};

/** The card of a token, or the response to a request whose token stands for none that is known. */
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

/**
 * What an equal request has equal, in canonical order. Of a token it is the hash by the secret of these
 * identities; `shown` is the card of a number.
 */
export const comparableOf = (
  identities: Identities,
  merchantId: string,
  request: CreateRequest,
  shown: ShownCard | TokenInput,
): ReturnType<typeof comparableCreate> => {
  const card =
    'token' in shown
      ? comparableToken(shown, identities.fingerprintOf({ token: shown.token }))
      : comparableCard(shown.card, request.card.brand);
  return comparableCreate(merchantId, request, card);
};
