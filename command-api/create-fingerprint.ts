/**
 * The canonical JSON of what makes two creates the same request (gaps §8), from which the fingerprint
 * is made. The details are brought into canonical order once, for this text and for the event.
 */
import type { TokenInput } from '../shared/payment/card.ts';
import {
  type MaskedCard,
  type PaymentDetails,
  paymentDetails,
} from '../shared/payment/payment-events.ts';
import { canonicalJson, withoutLoneSurrogate } from '../shared/runtime/canonical-json.ts';
import { inCanonicalOrder } from '../shared/runtime/canonical-schema.ts';
import { compileSchema } from '../shared/runtime/compiled-schema.ts';
import type { CreateRequest } from './request/payment-request.ts';

const copyInOrder = compileSchema(inCanonicalOrder(paymentDetails, true));

/** Of the card only what tells cards apart without giving one away, in canonical order. */
export const comparableCard = (masked: MaskedCard, givenBrand: string | undefined) => {
  const { bin, last4, holderName, expiryMonth, expiryYear } = masked;
  return { bin, brand: givenBrand ?? null, expiryMonth, expiryYear, holderName, last4 };
};

/** Of a token its keyed hash, and what stands beside it (gaps §14), in canonical order. */
export const comparableToken = ({ holderName, brand }: TokenInput, tokenHash: string) => ({
  brand: brand ?? null,
  holderName,
  tokenHash,
});

/**
 * The text, which is the canonical JSON of the same fields in any order; and the details in canonical
 * order, or as they are where they do not fit an event.
 */
export const comparableCreate = (
  merchantId: string,
  { amount, currency, captureNow, details }: CreateRequest,
  card: ReturnType<typeof comparableCard> | ReturnType<typeof comparableToken>,
): { text: string; details: PaymentDetails } => {
  const inOrder = copyInOrder(details) as PaymentDetails | undefined;
  const comparable = {
    amount,
    captureNow,
    card,
    currency,
    details: inOrder ?? details,
    merchantId,
  };
  return {
    text:
      inOrder === undefined
        ? canonicalJson(comparable)
        : withoutLoneSurrogate(JSON.stringify(comparable)),
    details: comparable.details,
  };
};
