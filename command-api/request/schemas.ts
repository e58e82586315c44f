/** The schemas of a create's body (interface, "Resources and their fields"; gaps §3, §14, §21). */
import { z } from 'zod';
import {
  currencyCode,
  givenForms,
  object,
  optionalChoice,
  optionalDateTime,
  optionalFlag,
  optionalInteger,
  optionalList,
  optionalText,
  positiveInteger,
  requiredChoice,
  requiredObject,
  requiredPattern,
  requiredText,
  TEXT_UNITS_MAX,
} from '../../shared/http/fields.ts';
import {
  Billing,
  Consumer,
  Metadata,
  ProductItem,
  Shipping,
  Source,
} from '../../shared/http/payment-schemas.ts';
import { CARD_TOKEN } from '../../shared/payment/card.ts';
import {
  CARD_NUMBER,
  CRYPTOGRAM,
  ECI,
  paymentDetails,
  threeDSecure,
  UUID,
} from '../../shared/payment/fields.ts';
import {
  addressKinds,
  holdsControl,
  NOT_PUBLIC,
  urlProblem,
  writtenUrl,
} from '../../webhooks/endpoints/addresses.ts';

export const RETURN_URL_NOT_PUBLIC = `paymentMethod.card.authentication.returnUrl ${NOT_PUBLIC}`;

/** Taken with the simulator alone, whose page is opened on the same machine. */
export const isLocal = (text: string): boolean =>
  !holdsControl(text) && /^http:\/\/(localhost|127\.0\.0\.1)[:/]/.test(writtenUrl(text));

const kindOf = addressKinds([]);
const returnProblem = (text: string): string | undefined =>
  isLocal(text) ? undefined : urlProblem(text, kindOf, TEXT_UNITS_MAX);

const Authentication = object({
  returnUrl: requiredText().refine((text) => returnProblem(text) === undefined, {
    error: ({ input }) => returnProblem(String(input)),
  }),
}).meta({ id: 'Authentication' });

const PRODUCT_ITEMS_MAX = 200;
const PREVIOUS_FAILURES_MAX = 20;

const { version, exemption } = threeDSecure.shape;

/** Results of 3-D Secure that the merchant brings along (gaps §21). */
const ThreeDSecure = object({
  version: requiredChoice(version.options),
  eci: requiredPattern(ECI, 'two digits'),
  cryptogram: requiredPattern(CRYPTOGRAM, '28 or 32 characters of base64'),
  transactionId: requiredPattern(UUID, 'a UUID'),
  exemption: optionalChoice(exemption.unwrap().options),
}).meta({ id: 'ThreeDSecure' });

export const OF_A_NUMBER = ['number', 'cvv', 'expiryMonth', 'expiryYear'];
/** For the API documents, which say what is exclusive. */
const BOTH_WAYS = { required: ['threeDSecure', 'authentication'] };

export const Card = requiredObject({
  number: requiredPattern(CARD_NUMBER, '12 to 19 digits'),
  holderName: requiredText(),
  cvv: optionalText(),
  expiryMonth: requiredPattern(/^(0[1-9]|1[0-2])$/, 'MM (01-12)'),
  expiryYear: requiredPattern(/^[0-9]{4}$/, 'YYYY'),
  brand: optionalText(),
  threeDSecure: ThreeDSecure.optional(),
  authentication: Authentication.optional(),
}).meta({ id: 'Card', not: { anyOf: [{ required: ['token'] }, BOTH_WAYS] } });

/** A token in place of number, expiry and CVV (gaps §14). */
export const CardByToken = requiredObject({
  token: requiredPattern(CARD_TOKEN, '1 to 255 of A-Z a-z 0-9 _ -'),
  holderName: requiredText(),
  brand: optionalText(),
  threeDSecure: ThreeDSecure.optional(),
  authentication: Authentication.optional(),
}).meta({
  id: 'CardByToken',
  not: { anyOf: [...OF_A_NUMBER.map((field) => ({ required: [field] })), BOTH_WAYS] },
});

const CARD_TYPE = { type: requiredChoice(['CARD']) };
const ByNumber = requiredObject({ ...CARD_TYPE, card: Card });
const ByToken = requiredObject({ ...CARD_TYPE, card: CardByToken });

const PaymentMethod = requiredObject({
  ...CARD_TYPE,
  card: z.union([Card, CardByToken]),
}).meta({ id: 'PaymentMethod' });

const PreviousFailure = object({
  gateway: optionalText(),
  attemptNumber: optionalInteger(),
  responseCode: optionalText(),
  reason: optionalText(),
  timestamp: optionalDateTime(),
}).meta({ id: 'PreviousFailure' });

/** Texts and choices: each form of the others stands below. */
const { shape: plainDetails } = paymentDetails.omit({
  productItems: true,
  consumer: true,
  billing: true,
  shipping: true,
  previousFailures: true,
  source: true,
  metadata: true,
});

const requestWith = <T extends z.ZodType>(paymentMethod: T) => ({
  amount: positiveInteger(),
  currency: currencyCode(),
  paymentMethod,
  captureNow: optionalFlag(),
  ...givenForms(plainDetails),
  productItems: optionalList(ProductItem, PRODUCT_ITEMS_MAX),
  consumer: Consumer.optional(),
  billing: Billing.optional(),
  shipping: Shipping.optional(),
  previousFailures: optionalList(PreviousFailure, PREVIOUS_FAILURES_MAX),
  source: Source.optional(),
});

/** `authentication` of a payment that the merchant initiates. */
const WITHOUT_SHOPPER = {
  required: ['source'],
  properties: {
    source: { required: ['initiatedBy'], properties: { initiatedBy: { const: 'MERCHANT' } } },
    paymentMethod: { properties: { card: { required: ['authentication'] } } },
  },
};

/** For the API documents; a request is read by the one of the two below that fits it. */
export const PaymentRequest = object({
  ...requestWith(PaymentMethod),
  metadata: Metadata.optional(),
}).meta({ id: 'PaymentRequest', not: WITHOUT_SHOPPER });
export const RequestByNumber = object(requestWith(ByNumber));
export const RequestByToken = object(requestWith(ByToken));
