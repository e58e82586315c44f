import type { CardInput, TokenInput } from '../../shared/payment/card.ts';
import { TWELVE_DIGITS } from '../../shared/payment/card-forms.ts';
import { digitsHoldCardNumber, holdsKnownCard } from '../../shared/runtime/card-numbers.ts';

export type SentCard = CardInput | TokenInput;

const plain = (text: string): string => text.replace(/[^A-Za-z0-9_.-]/g, '');

/**
 * A provider's own code as it may be stored, logged and shown. Undefined where it may hold a card
 * number: 12 digits in a row, a known brand's in blocks, this call's however split, or its cryptogram.
 */
export const cleanCode = (code: string | null | undefined, card?: SentCard): string | undefined => {
  const kept = plain(code ?? '');
  const holdsNumber =
    card !== undefined && 'number' in card && digitsHoldCardNumber(kept, card.number);
  const cryptogram = card?.threeDSecure?.cryptogram;
  const holdsCryptogram = cryptogram !== undefined && kept.includes(plain(cryptogram));
  if (
    kept === '' ||
    holdsNumber ||
    holdsCryptogram ||
    TWELVE_DIGITS.test(kept) ||
    holdsKnownCard(kept)
  )
    return undefined;
  return kept.slice(0, 64);
};
