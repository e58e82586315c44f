/**
 * What can be asked of a payment. Ids and identities arrive in the command, so that deciding stays
 * pure; cards are masked here, the secret never comes this far.
 */
import type { CardBrand } from './card.ts';
import type { FinalOutcomeDetails } from './outcome.ts';
import type { MaskedCard, PaymentDetails, RequestIdentity, Resolution } from './payment-events.ts';

/** An integer of minor units, from 1; 'too large' for one above 2^53-1 (gaps §3). */
export type RequestedAmount = number | 'too large';

/** What a merchant may do (gaps §3); `acceptedBrands` absent means all, unknown ones too. */
export type MerchantRules = {
  maxAmountMinor: number;
  acceptedBrands?: readonly CardBrand[];
  /** A merchantReference names one payment that is not FAILED (gaps §8). */
  uniqueReferences?: boolean;
};

export type CreateCommand = {
  kind: 'create';
  operationId: string;
  paymentId: string;
  merchantId: string;
  amountMinor: RequestedAmount;
  currency: string;
  captureNow: boolean;
  card: MaskedCard;
  /** The brand that the number itself shows. */
  numberBrand: CardBrand | undefined;
  details: PaymentDetails;
  identity: RequestIdentity;
  rules: MerchantRules;
};

/** An omitted amount is the whole authorized amount, or what is left to refund (gaps §5). */
export type ChangeCommand = {
  kind: 'capture' | 'void' | 'refund';
  operationId: string;
  amountMinor?: RequestedAmount | undefined;
  reason?: string | undefined;
  identity: RequestIdentity;
};

/**
 * Records an outcome, as the provider gave it or as it was proven; `resolution` where a person's
 * word stands in place of the provider's.
 */
export type RecordCommand = {
  kind: 'record';
  operationId: string;
  resolution?: Resolution;
} & FinalOutcomeDetails;

export type Command = CreateCommand | ChangeCommand | RecordCommand;
