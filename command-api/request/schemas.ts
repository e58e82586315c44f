/** The schemas of a create's body (interface, "Resources and their fields"; gaps §3, §14, §21). */
import { z } from 'zod';
import {
  currencyCode,
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
import { CARD_NUMBER } from '../../shared/payment/card-forms.ts';
import { CRYPTOGRAM, ECI, threeDSecure, UUID } from '../../shared/payment/fields.ts';
import { addressKinds, isPublicHttps } from '../../shared/webhooks/addresses.ts';

const NOT_PUBLIC = 'must be a public https address';
export const RETURN_URL_NOT_PUBLIC = `paymentMethod.card.authentication.returnUrl ${NOT_PUBLIC}`;

/** Taken with the simulator alone, whose page is opened on the same machine. */
export const isLocal = (text: string): boolean => {
  if (!/^http:\/\//i.test(text) || !URL.canParse(text)) return false;
  return ['localhost', '127.0.0.1'].includes(new URL(text).hostname);
};

const kindOf = addressKinds([]);

const Authentication = object({
  returnUrl: requiredText().refine((text) => isLocal(text) || isPublicHttps(text, kindOf), {
    error: NOT_PUBLIC,
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

export const Card = requiredObject({
  number: requiredPattern(CARD_NUMBER, '12 to 19 digits'),
  holderName: requiredText(),
  cvv: optionalText(),
  expiryMonth: requiredPattern(/^(0[1-9]|1[0-2])$/, 'MM (01-12)'),
  expiryYear: requiredPattern(/^[0-9]{4}$/, 'YYYY'),
  brand: optionalText(),
  threeDSecure: ThreeDSecure.optional(),
  authentication: Authentication.optional(),
}).meta({ id: 'Card' });

/** A token in place of number, expiry and CVV (gaps §14). */
export const CardByToken = requiredObject({
  token: requiredPattern(CARD_TOKEN, '1 to 255 of A-Z a-z 0-9 _ -'),
  holderName: requiredText(),
  brand: optionalText(),
  threeDSecure: ThreeDSecure.optional(),
  authentication: Authentication.optional(),
}).meta({ id: 'CardByToken' });

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

const requestWith = <T extends z.ZodType>(paymentMethod: T) => ({
  amount: positiveInteger(),
  currency: currencyCode(),
  paymentMethod,
  captureNow: optionalFlag(),
  descriptor: optionalText(),
  merchantReference: optionalText(),
  goodsType: optionalChoice(['PHYSICAL', 'DIGITAL', 'MIXED']),
  productItems: optionalList(ProductItem, PRODUCT_ITEMS_MAX),
  consumer: Consumer.optional(),
  billing: Billing.optional(),
  shipping: Shipping.optional(),
  previousFailures: optionalList(PreviousFailure, PREVIOUS_FAILURES_MAX),
  source: Source.optional(),
});

/** For the API documents; a request is read by the one of the two below that fits it. */
export const PaymentRequest = object({
  ...requestWith(PaymentMethod),
  metadata: Metadata.optional(),
}).meta({ id: 'PaymentRequest' });
export const RequestByNumber = object(requestWith(ByNumber));
export const RequestByToken = object(requestWith(ByToken));
