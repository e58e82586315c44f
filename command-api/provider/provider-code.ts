import { TWELVE_DIGITS } from '../../shared/payment/card-digits.ts';
import { digitsHoldCardNumber, holdsKnownCard } from '../../shared/runtime/card-numbers.ts';

/**
 * A provider's own code as it may be stored, logged and shown. Undefined where it may hold a card
 * number: 12 digits in a row, a known brand's in blocks, or this call's `number` however split.
 */
export const cleanCode = (code: string | null | undefined, number?: string): string | undefined => {
  const kept = (code ?? '').replace(/[^A-Za-z0-9_.-]/g, '');
  const holdsNumber = number !== undefined && digitsHoldCardNumber(kept, number);
  if (kept === '' || holdsNumber || TWELVE_DIGITS.test(kept) || holdsKnownCard(kept))
    return undefined;
  return kept.slice(0, 64);
};
