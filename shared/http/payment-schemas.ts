/** A payment's schemas, in the contract's names and order; tests alone check responses by them. */
import { z } from 'zod';
import { ECI, EXEMPTIONS, THREE_D_SECURE_VERSIONS, UUID } from '../payment/card-forms.ts';
import { PAYMENT_ID } from '../payment/event-fields.ts';
import {
  ADVICES,
  FAILURE_CODES,
  maskedCard,
  metadata,
  networkCode,
} from '../payment/payment-events.ts';
import type * as readModel from '../payment/payment-response.ts';
import { PAYMENT_STATUSES } from '../payment/transitions.ts';
import { ERROR_CODES } from './errors.ts';
import {
  choice,
  countableInteger,
  named,
  object,
  optionalChoice,
  optionalCountry,
  optionalText,
  requiredChoice,
  requiredObject,
  requiredText,
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

export const ProductItem = object({
  id: requiredText(),
  name: requiredText(),
  quantity: countableInteger(),
  unitPrice: countableInteger(),
  goodsType: requiredChoice(['PHYSICAL', 'DIGITAL']),
}).meta({ id: 'ProductItem' });

export const Consumer = object({
  firstName: requiredText(),
  lastName: optionalText(),
  email: requiredText(),
  phone: optionalText(),
  ip: optionalText(),
}).meta({ id: 'Consumer' });

export const Billing = object({ address: Address }).meta({ id: 'Billing' });

export const Shipping = object({
  address: Address.optional(),
  firstName: optionalText(),
  lastName: optionalText(),
}).meta({ id: 'Shipping' });

export const Source = object({
  storeId: requiredText(),
  initiatedBy: optionalChoice(['CONSUMER', 'MERCHANT']),
  externalMerchantId: optionalText(),
}).meta({ id: 'Source' });

export const Metadata = metadata.meta({
  id: 'Metadata',
  maxProperties: 20,
  description:
    "The merchant's own names and values, up to 20 names of A-Z a-z 0-9 _ -. No value may hold an @ between two characters: metadata goes to topics and webhooks and cannot be erased.",
});

const text = () => z.string().max(255);
const word = () => z.string().max(64);
const ofNetwork = networkCode.optional();
const time = () => z.string().meta({ format: 'date-time' });
const amount = (min: 0 | 1) => z.int().min(min).max(Number.MAX_SAFE_INTEGER);
const paymentId = () => z.string().regex(PAYMENT_ID);
const currency = () => z.string().regex(/^[A-Z]{3}$/);

/** As the request gave them; the cryptogram is kept nowhere (gaps §21). */
const ThreeDSecureResponse = named('ThreeDSecureResponse', {
  version: z.enum(THREE_D_SECURE_VERSIONS),
  eci: z.string().regex(ECI),
  transactionId: z.string().regex(UUID),
  exemption: z.enum(EXEMPTIONS).optional(),
});

const { last4, ...stored } = maskedCard.shape;
const cardFields = {
  ...stored,
  bin: stored.bin.describe(
    'The first 8 digits of Visa and Mastercard numbers of 16 digits, else 6. Left out only where the card came as a token and its provider tells none.',
  ),
  holderName: text(),
  cvvPresentDuringAttempt: z.boolean().optional(),
  brand: text().optional(),
  threeDSecure: ThreeDSecureResponse.optional(),
};

export const CardResponse = named('CardResponse', { ...cardFields, last4: last4.optional() });

export const PaymentMethodResponse = named('PaymentMethodResponse', {
  type: z.enum(['CARD']),
  card: CardResponse,
  encryptedCard: z.object(cardFields).describe('Mirrors card, without last4.'),
});

export const Failure = named('Failure', {
  failureCode: z.enum(FAILURE_CODES),
  providerFailureCode: word().optional().describe("The provider's own code, as it came."),
  advice: z.enum(ADVICES).describe('What to do about it: docs/errors.md has a row for each.'),
  networkDeclineCode: ofNetwork.describe("The card network's code, as it came."),
  networkAdviceCode: ofNetwork.describe("The card network's code of what to do, as it came."),
});

export const Transaction = named('Transaction', {
  id: z.string().regex(/^(AUTH|SALE|CAPT|VOID|REFN)_[0-9A-Z]{26}$/),
  type: z.enum(['AUTH', 'SALE', 'CAPTURE', 'VOID', 'REFUND']),
  amount: amount(1),
  result: z.enum(['SUCCEEDED', 'FAILED']),
  failure: Failure.optional().describe('There when the result is FAILED.'),
  createdAt: time(),
});

export const Dispute = named('Dispute', {
  id: word(),
  amount: amount(1),
  reason: word().describe("The provider's word."),
  status: z.enum(['OPEN', 'WON', 'LOST']),
  createdAt: time(),
});

export const PaymentStatus = choice(PAYMENT_STATUSES).meta({ id: 'PaymentStatus' });

export const NextAction = named('NextAction', {
  type: z.enum(['REDIRECT']),
  url: z.url().optional(),
  expiresAt: time(),
});

export const PaymentResponse = named('PaymentResponse', {
  paymentId: paymentId(),
  merchantReference: text().optional(),
  amount: amount(1).describe('The created amount; it never changes.'),
  authorizedAmount: amount(0).describe('The first authorized sum; it never changes.'),
  capturedAmount: amount(0).describe('What was captured; of a part, the rest was released.'),
  refundedAmount: amount(0).describe('What all refunds gave back until now.'),
  refundableAmount: amount(0).describe('What a refund may give back now.'),
  currency: currency(),
  status: PaymentStatus,
  paymentMethod: PaymentMethodResponse,
  captureNow: z.boolean(),
  descriptor: text().optional(),
  goodsType: z.enum(['PHYSICAL', 'DIGITAL', 'MIXED']).optional(),
  productItems: z.array(ProductItem).optional(),
  consumer: Consumer.optional(),
  billing: Billing.optional(),
  shipping: Shipping.optional(),
  metadata: Metadata.optional(),
  createdAt: time(),
  updatedAt: time(),
  transactions: z.array(Transaction).describe('Every finished attempt, in order.'),
  disputes: z
    .array(Dispute)
    .optional()
    .describe('What the cardholder disputed. While one is OPEN nothing is refunded.'),
  authorizationExpiresAt: time()
    .optional()
    .describe(
      'When the authorization ends, while the payment is AUTHORIZED, if the provider tells it.',
    ),
  nextAction: NextAction.optional(),
  source: Source.optional(),
});

export const PaymentFailureResponse = named('PaymentFailureResponse', {
  paymentId: paymentId(),
  merchantReference: text().optional(),
  metadata: Metadata.optional(),
  amount: amount(1),
  currency: currency(),
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
  timestamp: time(),
});

type SameFields<A, B> = [keyof A, keyof B] extends [keyof B, keyof A] ? true : never;
/** Compiles only where the schemas name every field of PaymentResponse (shared/payment), and no other. */
export const SCHEMAS_FIT_READ_MODEL: [
  SameFields<readModel.PaymentResponse, z.infer<typeof PaymentResponse>>,
  SameFields<readModel.PaymentFailureResponse, z.infer<typeof PaymentFailureResponse>>,
] = [true, true];
