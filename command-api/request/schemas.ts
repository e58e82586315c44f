/** The schemas of a create's body (interface, "Resources and their fields"; gaps §3, §14, §21). */
import { z } from 'zod';
import {
  currencyCode,
  object,
  positiveInteger,
  requestFields,
  requiredChoice,
  requiredObject,
  TEXT_UNITS_MAX,
} from '../../shared/http/fields.ts';
import { PaymentResponse, requestDetails } from '../../shared/http/payment-schemas.ts';
import { captureNow, operation, requestCard, returnUrl } from '../../shared/payment/fields.ts';
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

const forms = requestFields({ captureNow: captureNow.optional(), returnUrl });
const { token, ...byNumber } = requestFields(requestCard.shape);
const { holderName, brand, threeDSecure } = byNumber;

const Authentication = object({
  returnUrl: forms.returnUrl.refine((text) => returnProblem(text) === undefined, {
    error: ({ input }) => returnProblem(String(input)),
  }),
}).meta({ id: 'Authentication' });
const ofEither = { holderName, brand, threeDSecure, authentication: Authentication.optional() };

export const OF_A_NUMBER = ['number', 'cvv', 'expiryMonth', 'expiryYear'];

export const Card = requiredObject({ ...byNumber, ...ofEither }).meta({ id: 'Card' });

/** A token in place of number, expiry and CVV (gaps §14). */
export const CardByToken = requiredObject({ token, ...ofEither }).meta({ id: 'CardByToken' });

const CARD_TYPE = { type: requiredChoice(['CARD']) };
const ByNumber = requiredObject({ ...CARD_TYPE, card: Card });
const ByToken = requiredObject({ ...CARD_TYPE, card: CardByToken });

const PaymentMethod = requiredObject({
  type: CARD_TYPE.type.describe('Only CARD works.'),
  card: z
    .union([Card, CardByToken])
    .describe('Either by its number or by a token of the provider.'),
}).meta({ id: 'PaymentMethod' });

const requestWith = <T extends z.ZodType>(paymentMethod: T) => ({
  amount: positiveInteger().describe(
    "In minor units, 2500 for 25.00 USD; without a decimal point. At most the merchant's maximum, 99999999 by default, else 422.",
  ),
  currency: currencyCode().describe(operation.currency.description ?? ''),
  paymentMethod,
  captureNow: forms.captureNow,
  ...requestDetails,
});

/** For the API documents; a request is read by the one of the two below that fits it. */
export const PaymentRequest = object({
  ...requestWith(PaymentMethod),
  metadata: PaymentResponse.shape.metadata,
}).meta({ id: 'PaymentRequest' });
export const RequestByNumber = object(requestWith(ByNumber));
export const RequestByToken = object(requestWith(ByToken));
