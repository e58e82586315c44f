/** Each field of a payment once: as events have it, and what else shows or sends it follows. */
import { z } from 'zod';

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
/** For what is computed of amounts. */
export const minor = (units: number): Minor => units as Minor;
/** A moment in the form of the events' times. */
export const utcTime = z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
export const paymentId = z.string().regex(PAYMENT_ID);

/**
 * Recognises a repeat (gaps §8): `fingerprint` is a keyed hash of the parsed request; `keyHash` is one
 * of merchant, route, payment or webhook endpoint, and `Idempotency-Key`, absent without a key.
 */
export const identity = z.strictObject({ fingerprint: text, keyHash: text.optional() });
export type RequestIdentity = z.infer<typeof identity>;

/** The operation that an event was made for, and its amount. */
export const operation = {
  operationId: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/),
  amount,
  currency: z.string().regex(/^[A-Z]{3}$/),
};

export const freeText = z.string().max(255).optional();
export const providerCode = z.string().regex(/^[A-Za-z0-9_.-]{1,64}$/);

/** The failure codes a merchant can meet (gaps §12). */
export const FAILURE_CODES = [
  'CARD_DECLINED',
  'INSUFFICIENT_FUNDS',
  'EXPIRED_CARD',
  'INCORRECT_CVV',
  'INVALID_CARD_NUMBER',
  'LOST_CARD',
  'STOLEN_CARD',
  'PICKUP_CARD',
  'DO_NOT_HONOR',
  'SUSPECTED_FRAUD',
  'LIMIT_EXCEEDED',
  'CARD_NOT_SUPPORTED',
  'TRANSACTION_NOT_PERMITTED',
  'AUTHENTICATION_REQUIRED',
  'ISSUER_UNAVAILABLE',
  'PROCESSING_ERROR',
  'PROVIDER_UNAVAILABLE',
  'UNKNOWN_DECLINE',
] as const;
export type FailureCode = (typeof FAILURE_CODES)[number];

/** A code of the card network, verbatim (gaps §23). */
export const networkCode = z.string().regex(/^[A-Za-z0-9]{1,8}$/);

export const failureData = z.strictObject({
  failureCode: z.enum(FAILURE_CODES),
  providerFailureCode: providerCode.optional(),
  /** What a merchant can do about it (gaps §23), by the provider; without it the failure code decides. */
  advice: z
    .enum(['DO_NOT_RETRY', 'RETRY_LATER', 'CORRECT_DATA', 'AUTHENTICATE', 'USE_ANOTHER_CARD'])
    .optional(),
  networkDeclineCode: networkCode.optional(),
  networkAdviceCode: networkCode.optional(),
});
export type FailureData = z.infer<typeof failureData>;

const address = z.strictObject({
  street: freeText,
  city: freeText,
  country: freeText,
  state: freeText,
  zip: freeText,
});

const goodsType = z.enum(['PHYSICAL', 'DIGITAL', 'MIXED']);

/** `__proto__` is no name of an object's own. */
export const METADATA_NAME = /^(?!__proto__$)[A-Za-z0-9_-]{1,40}$/;
/** The merchant's own names and values (gaps §22). */
export const metadata = z.record(z.string().regex(METADATA_NAME), z.string().max(255));

/** A create's fields without amount and card: in requests, PaymentCreated, responses; PUBLISHED in topics. */
export const paymentDetails = z.strictObject({
  descriptor: freeText.describe("The text on the shopper's bank statement."),
  merchantReference: text.optional(),
  goodsType: goodsType.optional(),
  productItems: z
    .array(
      z.strictObject({
        id: text,
        name: text,
        quantity: countable,
        unitPrice: countable,
        goodsType: z.enum(['PHYSICAL', 'DIGITAL']),
      }),
    )
    .max(200)
    .optional(),
  consumer: z
    .strictObject({
      firstName: text,
      lastName: freeText,
      email: text,
      phone: freeText,
      ip: freeText,
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
        attemptNumber: z.int().optional(),
        responseCode: freeText,
        reason: freeText,
        timestamp: freeText,
      }),
    )
    .max(20)
    .optional(),
  source: z
    .strictObject({
      storeId: text,
      initiatedBy: z.enum(['CONSUMER', 'MERCHANT']).optional(),
      externalMerchantId: freeText,
    })
    .optional(),
  metadata: metadata.optional(),
});
export type PaymentDetails = z.infer<typeof paymentDetails>;

/** What topics carry of them (ADR-0050): nothing of a person, and no free text that a person typed. */
export const PUBLISHED = {
  merchantReference: true,
  goodsType: true,
  productItems: true,
  source: true,
  metadata: true,
} as const;

/** The electronic commerce indicator: what the authentication came to. */
export const ECI = /^[0-9]{2}$/;
/** 28 or 32 characters of base64: the cardholder's bank proves the authentication by it. */
export const CRYPTOGRAM =
  /^(?:[A-Za-z0-9+/]{4}){6,7}(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)$/;
/** The directory server's id of the authentication. */
export const UUID = /^[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$/;

/** The results of a 3-D Secure authentication (gaps §21), without the cryptogram: it is kept nowhere. */
export const threeDSecure = z.strictObject({
  /** Of the protocol, EMV 3-D Secure. */
  version: z.enum(['2.1.0', '2.2.0', '2.3.1']),
  eci: z.string().regex(ECI),
  transactionId: z.string().regex(UUID),
  /** Why a card scheme may forgo the authentication. */
  exemption: z.enum(['LOW_RISK', 'NONE']).optional(),
});

/** As a request gives them; the cryptogram lives in memory for one provider call. */
export type ThreeDSecure = z.infer<typeof threeDSecure> & { cryptogram: string };

/** The one masked form of a card (gaps §4); `bin` is absent where a token's provider tells none. */
export const maskedCard = z.strictObject({
  bin: z
    .string()
    .regex(/^[0-9]{6}([0-9]{2})?$/)
    .optional(),
  last4: z.string().regex(/^[0-9]{4}$/),
  holderName: text,
  cvvPresentDuringAttempt: z.boolean(),
  expiryMonth: z.string().regex(/^(0[1-9]|1[0-2])$/),
  expiryYear: z.string().regex(/^[0-9]{4}$/),
  brand: text.optional(),
  threeDSecure: threeDSecure.optional(),
});
export type MaskedCard = z.infer<typeof maskedCard>;

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

/** The events of a family, by its schemas. */
export type EventsOf<S extends Record<string, z.ZodType>> = {
  [T in keyof S & string]: { type: T; data: z.infer<S[T]> };
}[keyof S & string];
