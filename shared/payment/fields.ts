/**
 * Each field of a payment once: its form in events, its meaning, and what else shows or sends it. `requestForms` is how a
 * request gives it, where events have another form; only a `published` field is in topics.
 */
import { z } from 'zod';

type FormInRequests =
  | { form: z.ZodType }
  | { format: 'date-time' }
  | { pattern: RegExp; words: string };
/** In the place of the stored form: another one, any RFC 3339 time, or a pattern with its words for a merchant. */
export const requestForms = new WeakMap<z.ZodType, FormInRequests>();
const inRequests = <T extends z.ZodType>(field: T, rule: FormInRequests): T => {
  requestForms.set(field, rule);
  return field;
};
const formed = (pattern: RegExp, words: string, meaning: string) =>
  inRequests(z.string().regex(pattern).describe(meaning), { pattern, words });

const inTopics = new WeakSet<z.ZodType>();
/** For the compiler alone. */
type Published = { readonly isPublished: true };
/** Topics carry it whole (ADR-0050): it is nothing of a person, and no free text that a person typed. */
export const published = <T extends z.ZodType>(form: T, meaning: string) => {
  const field = form.describe(meaning);
  inTopics.add(field);
  return field as T & Published;
};
export const isPublished = (field: z.ZodType): boolean => inTopics.has(field);

/** Every id that comes from outside is checked against it. */
export const PAYMENT_ID = /^[A-Za-z0-9_-]{1,32}$/;

/** The forms of card numbers (gaps §3). */
export const CARD_DIGITS_MIN = 12;
export const CARD_DIGITS_MAX = 19;
export const CARD_NUMBER = /^[0-9]{12,19}$/;

/** Long enough for a card number (gaps §4). */
export const TWELVE_DIGITS = /[0-9]{12}/;
export const WITHOUT_TWELVE_DIGITS = /^(?![\s\S]*[0-9]{12})/;

export const text = z.string().min(1).max(255);
const countable = z.int().min(1).max(Number.MAX_SAFE_INTEGER);
/** An integer of minor units of its currency: 2500 is 25.00 USD. */
export const amount = countable.brand<'Minor'>();
export type Minor = z.infer<typeof amount>;
/** A moment in the form of the events' times. */
export const utcTime = z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
export const paymentId = published(z.string().regex(PAYMENT_ID), 'Given by this service.');
export const merchantId = published(text, 'The merchant whose payment it is.');
export const captureNow = published(
  z.boolean(),
  'true authorizes and captures in one step, a sale; false, the default, only authorizes.',
);

/**
 * Recognises a repeat (gaps §8): `fingerprint` is a keyed hash of the parsed request; `keyHash` is one
 * of merchant, route, payment or webhook endpoint, and `Idempotency-Key`, absent without a key.
 */
export const identity = z.strictObject({ fingerprint: text, keyHash: text.optional() });
export type RequestIdentity = z.infer<typeof identity>;

/** The operation that an event was made for, and its amount. */
export const operation = {
  operationId: published(
    z.string().regex(/^[A-Za-z0-9_-]{1,64}$/),
    'The same in an intent, in its outcome, and at the provider.',
  ),
  amount: published(amount, 'In minor units of the currency: 2500 is 25.00 USD.'),
  currency: published(
    z.string().regex(/^[A-Z]{3}$/),
    'Three capital letters of ISO 4217. Only USD works: a request with another one is 422, with anything else 400.',
  ),
};

const freeText = z.string().max(255).optional();
export const reason = freeText.describe('For auditors; stored and not shown.');
export const providerCode = z.string().regex(/^[A-Za-z0-9_.-]{1,64}$/);

/** Interface, "Payment response"; in the order in which a payment can reach them. */
export const PAYMENT_STATUSES = [
  'PENDING',
  'AUTHORIZED',
  'CAPTURED',
  'REFUNDED',
  'VOIDED',
  'FAILED',
] as const;
export type PaymentStatus = (typeof PAYMENT_STATUSES)[number];

/** The failure codes a merchant can meet (gaps §12), and what to do where the provider gives no advice (gaps §23). */
export const ADVICE_BY_CODE = {
  CARD_DECLINED: 'RETRY_LATER',
  INSUFFICIENT_FUNDS: 'RETRY_LATER',
  EXPIRED_CARD: 'USE_ANOTHER_CARD',
  INCORRECT_CVV: 'CORRECT_DATA',
  INVALID_CARD_NUMBER: 'CORRECT_DATA',
  LOST_CARD: 'DO_NOT_RETRY',
  STOLEN_CARD: 'DO_NOT_RETRY',
  PICKUP_CARD: 'DO_NOT_RETRY',
  DO_NOT_HONOR: 'RETRY_LATER',
  SUSPECTED_FRAUD: 'DO_NOT_RETRY',
  LIMIT_EXCEEDED: 'RETRY_LATER',
  CARD_NOT_SUPPORTED: 'USE_ANOTHER_CARD',
  TRANSACTION_NOT_PERMITTED: 'USE_ANOTHER_CARD',
  AUTHENTICATION_REQUIRED: 'AUTHENTICATE',
  ISSUER_UNAVAILABLE: 'RETRY_LATER',
  PROCESSING_ERROR: 'RETRY_LATER',
  PROVIDER_UNAVAILABLE: 'RETRY_LATER',
  UNKNOWN_DECLINE: 'RETRY_LATER',
} as const;
export type FailureCode = keyof typeof ADVICE_BY_CODE;
export const FAILURE_CODES = Object.keys(ADVICE_BY_CODE) as FailureCode[];

/** A code of the card network, verbatim (gaps §23). */
export const networkCode = z.string().regex(/^[A-Za-z0-9]{1,8}$/);

export const authorizationExpiresAt = published(
  utcTime.optional(),
  'When the authorization ends, while the payment is AUTHORIZED, if the provider tells it.',
);

/** Of a declined attempt; `advice` (gaps §23) is the provider's, without it the failure code decides. */
export const failureData = z.strictObject({
  failureCode: published(z.enum(FAILURE_CODES), 'Why it failed; docs/errors.md lists the codes.'),
  providerFailureCode: published(providerCode.optional(), "The provider's own code, as it came."),
  advice: published(
    z
      .enum(['DO_NOT_RETRY', 'RETRY_LATER', 'CORRECT_DATA', 'AUTHENTICATE', 'USE_ANOTHER_CARD'])
      .optional(),
    'What to do about it: docs/errors.md has a row for each.',
  ),
  networkDeclineCode: published(networkCode.optional(), "The card network's code, as it came."),
  networkAdviceCode: published(networkCode.optional(), "The card network's code of what to do."),
});
export type FailureData = z.infer<typeof failureData>;

const olderOf = (name: string) =>
  freeText.meta({ description: `Another name of ${name}.`, deprecated: true, writeOnly: true });

/** `line1` and `postalCode`, the older names of `street` and `zip`, are read and never stored. */
const requestAddress = z.strictObject({
  street: freeText,
  line1: olderOf('street'),
  city: freeText,
  country: inRequests(freeText.describe('Two letters of ISO 3166.'), {
    pattern: /^[A-Za-z]{2}$/,
    words: 'a two-letter ISO 3166 code',
  }),
  state: freeText.describe('State, province or region.'),
  zip: freeText,
  postalCode: olderOf('zip'),
});
export type RequestAddress = z.infer<typeof requestAddress>;
const address = inRequests(requestAddress.omit({ line1: true, postalCode: true }), {
  form: requestAddress,
});

/** `__proto__` is no name of an object's own. */
export const METADATA_NAME = /^(?!__proto__$)[A-Za-z0-9_-]{1,40}$/;

/** A create's fields without amount and card: in requests, PaymentCreated and, but for earlier failures, responses. */
export const paymentDetails = z.strictObject({
  descriptor: freeText.describe("The text on the shopper's bank statement."),
  merchantReference: published(
    text.optional(),
    "The merchant's own name, such as an order number.",
  ),
  goodsType: published(z.enum(['PHYSICAL', 'DIGITAL', 'MIXED']).optional(), 'Of the whole order.'),
  productItems: z
    .array(
      z.strictObject({
        id: published(text, "The merchant's id of the item."),
        name: text,
        quantity: published(countable, 'From 1.'),
        unitPrice: published(countable, 'In minor units, from 1.'),
        goodsType: published(z.enum(['PHYSICAL', 'DIGITAL']), 'Of the item.'),
      }),
    )
    .max(200)
    .optional(),
  consumer: z
    .strictObject({
      firstName: text,
      lastName: freeText,
      email: text.describe('Not checked beyond its length.'),
      phone: freeText.describe('E.164 is recommended.'),
      ip: freeText.describe('The address at the time of the purchase.'),
    })
    .optional(),
  billing: z.strictObject({ address }).optional(),
  shipping: z
    .strictObject({ address: address.optional(), firstName: freeText, lastName: freeText })
    .optional(),
  previousFailures: z
    .array(
      z.strictObject({
        gateway: freeText,
        attemptNumber: z.int().optional().describe('From 1.'),
        responseCode: freeText.describe("The other provider's code."),
        reason: freeText,
        timestamp: inRequests(freeText.describe('RFC 3339.'), { format: 'date-time' }),
      }),
    )
    .max(20)
    .optional()
    .describe('Earlier attempts at other providers; stored for auditors and never shown.'),
  source: z
    .strictObject({
      storeId: published(text, "The service's id of the merchant's store."),
      initiatedBy: published(
        z.enum(['CONSUMER', 'MERCHANT']).optional(),
        'CONSUMER if the shopper is there, else MERCHANT, which goes with no `authentication`.',
      ),
      externalMerchantId: published(freeText, "The merchant's own id of the merchant."),
    })
    .optional(),
  metadata: published(
    z.record(z.string().regex(METADATA_NAME), z.string().max(255)).optional(),
    "The merchant's own names and values, up to 20 names of A-Z a-z 0-9 _ -. No value may hold an @ between two characters: metadata goes to topics and webhooks and cannot be erased.",
  ),
});
export type PaymentDetails = z.infer<typeof paymentDetails>;

const BASE64 =
  /^(?:[A-Za-z0-9+/]{4}){6,7}(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)$/;
const UUID = /^[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$/;

/** The results of a 3-D Secure authentication (gaps §21), as a request gives them. */
export const requestThreeDSecure = z.strictObject({
  version: z.enum(['2.1.0', '2.2.0', '2.3.1']).describe('Of the protocol, EMV 3-D Secure.'),
  eci: formed(/^[0-9]{2}$/, 'two digits', 'The electronic commerce indicator.'),
  cryptogram: formed(
    BASE64,
    '28 or 32 characters of base64',
    'By it the bank proves the authentication. It goes to the provider alone, and is kept nowhere.',
  ),
  transactionId: formed(UUID, 'a UUID', "The directory server's id of the authentication."),
  exemption: z.enum(['LOW_RISK', 'NONE']).optional().describe('Why no authentication was made.'),
});
/** The cryptogram lives in memory for one provider call. */
export type ThreeDSecure = z.infer<typeof requestThreeDSecure>;
const threeDSecure = requestThreeDSecure.omit({ cryptogram: true });

const expiryMonth = formed(/^(0[1-9]|1[0-2])$/, 'MM (01-12)', 'Two digits, 01 to 12.');
const expiryYear = formed(/^[0-9]{4}$/, 'YYYY', 'Four digits.');
const brand = published(text.optional(), 'Such as VISA; the one that a number shows goes first.');

/** As a request gives it, by number or by token; of these two and the CVV nothing is stored. */
export const requestCard = z.strictObject({
  number: formed(CARD_NUMBER, '12 to 19 digits', 'For one call of the provider; never stored.'),
  token: formed(
    /^[A-Za-z0-9_-]{1,255}$/,
    '1 to 255 of A-Z a-z 0-9 _ -',
    "The provider's token of a card, in place of its number, date and CVV.",
  ),
  holderName: text,
  cvv: freeText.describe('The security code of the card; optional, never stored and never shown.'),
  expiryMonth,
  expiryYear,
  brand,
  threeDSecure: requestThreeDSecure.optional(),
});
export type RequestCard = z.infer<typeof requestCard>;
/** Of a request's `authentication`, which the provider alone gets. */
export const returnUrl = text.describe(
  'Where the shopper is led afterwards. A public https address without control characters, with the simulator also http://localhost and http://127.0.0.1; it is sent as the URL standard writes it, at most 255 characters.',
);

/** The one masked form of a card (gaps §4); `bin` is absent where a token's provider tells none. */
export const maskedCard = z.strictObject({
  bin: published(
    z
      .string()
      .regex(/^[0-9]{6}([0-9]{2})?$/)
      .optional(),
    'The first 8 digits of Visa and Mastercard numbers of 16 digits, else 6. Left out only where the card came as a token and its provider tells none.',
  ),
  last4: published(z.string().regex(/^[0-9]{4}$/), 'The last four digits of the card.'),
  holderName: text,
  cvvPresentDuringAttempt: z.boolean().describe('Whether a CVV was sent.'),
  expiryMonth,
  expiryYear,
  brand,
  threeDSecure: published(threeDSecure.optional(), 'Without the cryptogram.'),
});
export type MaskedCard = z.infer<typeof maskedCard>;

type Details = typeof paymentDetails.shape;
type OpenDetail =
  | { [N in keyof Details]: Details[N] extends Published ? N : never }[keyof Details]
  | 'productItems'
  | 'source';
/** The details that stay in the clear: the published ones, and those whose parts are. */
const OPEN = Object.fromEntries(
  Object.entries(paymentDetails.shape)
    .filter(([name, field]) => isPublished(field) || name === 'productItems' || name === 'source')
    .map(([name]) => [name, true]),
) as Record<OpenDetail, true>;

/** Sealed texts of a person (docs/privacy.md). `key` is the id of the one key that opens it. */
const sealedBox = z.strictObject({
  box: z.string().regex(/^[A-Za-z0-9_-]{38,}$/),
  key: z.string().regex(/^[A-Za-z0-9_-]{32,40}$/),
});

const item = paymentDetails.shape.productItems.unwrap().element;
/** A create's card and details without what is sealed. */
const openCard = maskedCard.omit({ holderName: true });
const openDetails = paymentDetails.pick(OPEN).extend({
  productItems: z
    .array(item.omit({ name: true }))
    .max(200)
    .optional(),
});

export type OpenCard = z.infer<typeof openCard>;
export type OpenDetails = z.infer<typeof openDetails>;

/** What one box of a create holds. */
export const personalGroup = paymentDetails.omit(OPEN).extend({
  holderName: text,
  /** One for each product item. */
  itemNames: z.array(text).max(200).optional(),
});
export type PersonalGroup = z.infer<typeof personalGroup>;

/** As events are stored: no field could hold one of these texts in the clear. */
export const sealedForms = {
  card: openCard,
  details: openDetails,
  personal: sealedBox,
  reason: sealedBox.optional(),
};

/** As events are read: version 1 had the texts in the clear. */
const readForm = <T extends z.ZodType>(clear: T) =>
  sealedBox.partial().extend({ clear: clear.optional() });
export const readForms = {
  personal: readForm(personalGroup),
  reason: readForm(z.string().max(255)).optional(),
};

/** An operator's proof of an outcome; no run of digits as long as a card number. */
const evidence = z.string().min(1).max(1000).regex(WITHOUT_TWELVE_DIGITS);

/**
 * Present where two operators resolved by hand (ADR-0098): `requestedBy` with `requestEvidence` (events before
 * the second person lack both), and the actor of the event's context with `evidence`.
 */
export const resolution = z.strictObject({
  evidence,
  requestedBy: text.optional(),
  requestEvidence: evidence.optional(),
  withoutFence: z.literal(true).optional(),
});
export type Resolution = z.infer<typeof resolution>;

/** Stands under this name in the API document. */
const component = <T extends z.core.$ZodShape>(id: string, shape: T) =>
  z.object(shape).meta({ id });

const word = z.string().max(64);
const time = z.string().meta({ format: 'date-time' });
/** Minor units, also none. */
const sum = z.int().min(0).max(Number.MAX_SAFE_INTEGER).brand<'Minor'>();

/** Of a declined attempt in a response (gaps §12, §23). */
export const Failure = component('Failure', {
  ...failureData.required({ advice: true }).shape,
  providerFailureCode: word.optional().meta(failureData.shape.providerFailureCode.meta() ?? {}),
});
export type Failure = z.infer<typeof Failure>;

/** A finished attempt; an unfinished one is not listed (gaps §5). */
export const Transaction = component('Transaction', {
  id: z.string().regex(/^(AUTH|SALE|CAPT|VOID|REFN)_[0-9A-Z]{26}$/),
  type: z
    .enum(['AUTH', 'SALE', 'CAPTURE', 'VOID', 'REFUND'])
    .describe('AUTH, or SALE where `captureNow` is true, then the others; the id begins with it.'),
  amount: operation.amount,
  result: z.enum(['SUCCEEDED', 'FAILED']),
  failure: Failure.optional().describe('There when the result is FAILED.'),
  createdAt: time.describe('The time of its outcome.'),
});
export type Transaction = z.infer<typeof Transaction>;

/** A cardholder's dispute (gaps §15). */
export const Dispute = component('Dispute', {
  id: word,
  amount: operation.amount,
  reason: word.describe("The provider's word."),
  status: z.enum(['OPEN', 'WON', 'LOST']),
  createdAt: time,
});
export type Dispute = z.infer<typeof Dispute>;

const NextAction = component('NextAction', {
  type: z.enum(['REDIRECT']).describe('The shopper has to be sent to `url`.'),
  url: z.url().optional().describe('A secret, which the response to a create alone has.'),
  expiresAt: time.describe('Until then the shopper is waited for.'),
});

const PersonalData = component('PersonalData', {
  erased: z.literal(true).optional(),
  erasedAt: time.optional(),
  unavailable: z.literal(true).optional(),
  sealed: z.literal(true).optional(),
});

const { last4, ...masked } = maskedCard.shape;
const cardShown = {
  ...masked,
  holderName: z.string().max(255),
  cvvPresentDuringAttempt: masked.cvvPresentDuringAttempt.optional(),
  brand: freeText.describe(brand.description ?? ''),
  threeDSecure: component('ThreeDSecureResponse', threeDSecure.shape).optional(),
};

const PaymentMethodShown = component('PaymentMethodResponse', {
  type: z.enum(['CARD']).describe('Always CARD.'),
  card: component('CardResponse', { ...cardShown, last4: last4.optional() }),
  encryptedCard: z.object(cardShown).describe('Mirrors card, without last4.'),
});

const { merchantReference: _, previousFailures: __, source, ...details } = paymentDetails.shape;

/** The response to create, get, capture, void and refund (interface, "Payment response"), in its order. */
export const paymentResponse = z.object({
  paymentId,
  merchantReference: freeText.meta(paymentDetails.shape.merchantReference.meta() ?? {}),
  amount: operation.amount.describe('The created amount in minor units; it never changes.'),
  authorizedAmount: sum.describe('The first authorized sum; it never changes.'),
  capturedAmount: sum.describe('What was captured; of a part, the rest was released.'),
  refundedAmount: sum.describe('What all refunds gave back until now.'),
  refundableAmount: sum.describe('What a refund may give back now.'),
  currency: operation.currency,
  status: z.enum(PAYMENT_STATUSES),
  paymentMethod: PaymentMethodShown,
  captureNow,
  ...details,
  createdAt: time,
  updatedAt: time.describe('The time of the last event.'),
  transactions: z.array(Transaction).describe('Every attempt that has an outcome, in order.'),
  disputes: z
    .array(Dispute)
    .optional()
    .describe('While one is OPEN nothing can be refunded; a LOST one lowers `refundableAmount`.'),
  authorizationExpiresAt: time.optional().meta(authorizationExpiresAt.meta() ?? {}),
  /** While the provider waits for the shopper (gaps §21). */
  nextAction: NextAction.optional(),
  source,
  personalData: PersonalData.optional().describe(
    'Why names and addresses are missing: they were erased for good, or cannot be opened now.',
  ),
});
export type PaymentResponse = z.infer<typeof paymentResponse>;

/** The events of a family, by its schemas. */
export type EventsOf<S extends Record<string, z.ZodType>> = {
  [T in keyof S & string]: { type: T; data: z.infer<S[T]> };
}[keyof S & string];
