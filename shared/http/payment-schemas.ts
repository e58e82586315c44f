/** A payment's schemas, in the contract's names and order; tests alone check responses by them. */
import { z } from 'zod';
import { amount, maskedCard, metadata, paymentDetails, threeDSecure } from '../payment/fields.ts';
import { Failure, paymentResponse } from '../payment/response.ts';
import { PAYMENT_STATUSES } from '../payment/transitions.ts';
import { ERROR_CODES } from './errors.ts';
import {
  choice,
  givenForms,
  named,
  object,
  optionalCountry,
  optionalText,
  requiredObject,
} from './fields.ts';

/** `line1` and `postalCode` are the older names of `street` and `zip`. */
export const Address = requiredObject({
  street: optionalText(),
  line1: optionalText().meta({ deprecated: true, writeOnly: true }),
  city: optionalText(),
  country: optionalCountry(),
  state: optionalText(),
  zip: optionalText(),
  postalCode: optionalText().meta({ deprecated: true, writeOnly: true }),
}).meta({ id: 'Address' });

const { productItems, consumer, source } = paymentDetails.shape;

export const ProductItem = object(givenForms(productItems.unwrap().element.shape)).meta({
  id: 'ProductItem',
});

export const Consumer = object(givenForms(consumer.unwrap().shape)).meta({ id: 'Consumer' });

export const Billing = object({ address: Address }).meta({ id: 'Billing' });

export const Shipping = object({
  address: Address.optional(),
  firstName: optionalText(),
  lastName: optionalText(),
}).meta({ id: 'Shipping' });

export const Source = object(givenForms(source.unwrap().shape)).meta({ id: 'Source' });

export const Metadata = metadata.meta({
  id: 'Metadata',
  maxProperties: 20,
  description:
    "The merchant's own names and values, up to 20 names of A-Z a-z 0-9 _ -. No value may hold an @ between two characters: metadata goes to topics and webhooks and cannot be erased.",
});

const text = z.string().max(255);

/** As the request gave them; the cryptogram is kept nowhere (gaps §21). */
const ThreeDSecureResponse = named('ThreeDSecureResponse', threeDSecure.shape);

const { last4, ...stored } = maskedCard.shape;
const cardFields = {
  ...stored,
  bin: stored.bin.describe(
    'The first 8 digits of Visa and Mastercard numbers of 16 digits, else 6. Left out only where the card came as a token and its provider tells none.',
  ),
  holderName: text,
  cvvPresentDuringAttempt: z.boolean().optional(),
  brand: text.optional(),
  threeDSecure: ThreeDSecureResponse.optional(),
};

const PaymentMethodResponse = named('PaymentMethodResponse', {
  type: z.enum(['CARD']),
  card: named('CardResponse', { ...cardFields, last4: last4.optional() }),
  encryptedCard: z.object(cardFields).describe('Mirrors card, without last4.'),
});

export const PaymentStatus = choice(PAYMENT_STATUSES).meta({ id: 'PaymentStatus' });

export const PaymentResponse = named('PaymentResponse', {
  ...paymentResponse.shape,
  status: PaymentStatus,
  paymentMethod: PaymentMethodResponse,
  productItems: z.array(ProductItem).optional(),
  consumer: Consumer.optional(),
  billing: Billing.optional(),
  shipping: Shipping.optional(),
  metadata: Metadata.optional(),
  source: Source.optional(),
});

const { paymentId, merchantReference, currency } = paymentResponse.shape;

export const PaymentFailureResponse = named('PaymentFailureResponse', {
  paymentId,
  merchantReference,
  metadata: Metadata.optional(),
  amount,
  currency,
  status: z.enum(['FAILED']),
  failure: Failure,
});

export const PaymentList = named('PaymentList', {
  payments: z.array(PaymentResponse),
  nextCursor: z
    .string()
    .optional()
    .describe(
      'There when there may be more: the next `cursor`. Also on a page with fewer payments than `limit`.',
    ),
});

export const ErrorBody = named('ErrorBody', {
  error: z.enum(ERROR_CODES).describe('Stable; docs/errors.md has an entry for each.'),
  message: z.string(),
  details: z.array(z.string()),
  timestamp: z.string().meta({ format: 'date-time' }),
});
