/**
 * The events of a payment's stream (gaps §6). The type names and the field names are stored forms:
 * they are never renamed, only added to or upcast.
 *
 * Amounts are integers of minor units, from 1 (from 0 where a sentence says so). No schema has a
 * field that could hold a card number or a CVV, and every schema is strict, so none can be stored.
 */
import { z } from 'zod';
import { WITHOUT_TWELVE_DIGITS } from './card-digits.ts';
import { amountMinor, identity, operation, paymentId, text } from './event-fields.ts';

const optionalText = z.string().max(255).optional();
const providerCode = z.string().regex(/^[A-Za-z0-9_.-]{1,64}$/);

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
/** One of FAILURE_CODES. */
export type FailureCode = (typeof FAILURE_CODES)[number];

const address = z.strictObject({
  street: optionalText,
  city: optionalText,
  country: optionalText,
  state: optionalText,
  zip: optionalText,
});

const goodsType = z.enum(['PHYSICAL', 'DIGITAL', 'MIXED']);

/** What a payment keeps of its create request, apart from amount and card; no unknown field. */
export const paymentDetails = z.strictObject({
  merchantReference: text.optional(),
  descriptor: optionalText,
  goodsType: goodsType.optional(),
  productItems: z
    .array(
      z.strictObject({
        id: text,
        name: text,
        quantity: amountMinor,
        unitPrice: amountMinor,
        goodsType: z.enum(['PHYSICAL', 'DIGITAL']),
      }),
    )
    .max(200)
    .optional(),
  consumer: z
    .strictObject({
      firstName: text,
      lastName: optionalText,
      email: text,
      phone: optionalText,
      ip: optionalText,
    })
    .optional(),
  billing: z.strictObject({ address }).optional(),
  shipping: z
    .strictObject({ address: address.optional(), firstName: optionalText, lastName: optionalText })
    .optional(),
  previousFailures: z
    .array(
      z.strictObject({
        gateway: optionalText,
        attemptNumber: z.int().optional(),
        responseCode: optionalText,
        reason: optionalText,
        timestamp: optionalText,
      }),
    )
    .max(20)
    .optional(),
  source: z
    .strictObject({
      storeId: text,
      initiatedBy: z.enum(['CONSUMER', 'MERCHANT']).optional(),
      externalMerchantId: optionalText,
    })
    .optional(),
});
/** See `paymentDetails`. */
export type PaymentDetails = z.infer<typeof paymentDetails>;

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
});
/** See `maskedCard`. */
export type MaskedCard = z.infer<typeof maskedCard>;

/** What proves an outcome, in an operator's words; no run of digits as long as a card number. */
const evidence = z.string().min(1).max(1000).regex(WITHOUT_TWELVE_DIGITS);

/**
 * Present where two operators resolved the operation by hand (ADR-0098): the one who approved is the
 * actor of the event's context and gave `evidence`, `requestedBy` requested it with
 * `requestEvidence`. Both are absent where an event is older than the second person.
 */
const resolution = z.strictObject({
  evidence,
  requestedBy: text.optional(),
  requestEvidence: evidence.optional(),
  withoutFence: z.literal(true).optional(),
});
/** What operators said for an outcome. */
export type Resolution = z.infer<typeof resolution>;

const ended = { ...operation, resolution: resolution.optional() };
const decline = {
  ...ended,
  failureCode: z.enum(FAILURE_CODES),
  providerFailureCode: providerCode.optional(),
  /**
   * DECLINED: the provider declined. NOT_SENT and FENCED: proven never carried out, so the
   * idempotency key of the operation is free again (gaps §7, §8).
   */
  outcome: z.enum(['DECLINED', 'NOT_SENT', 'FENCED']),
};
const approval = { ...ended, providerReference: providerCode.optional() };
/**
 * The name of the provider that the operation is sent to (ADR-0247), as `http:pay.example/v1`. Absent in
 * events from before there were names: such an operation is asked about at whatever provider is set.
 */
const provider = text.optional();
const requested = { ...operation, identity, provider, reason: optionalText };
/** What a provider can say for good of an operation that it is asked about. */
const providerOutcome = z.enum(['APPROVED', 'DECLINED', 'FENCED']);

/** The schema of each event's data at its current version; strict, for encoding. */
export const paymentSchemas = {
  /** The intent to authorize or sell; stored before the provider is called. */
  PaymentCreated: z.strictObject({
    ...operation,
    paymentId,
    merchantId: text,
    captureNow: z.boolean(),
    card: maskedCard,
    details: paymentDetails,
    identity,
    provider,
  }),
  /**
   * The provider has opened what it will authorize or sell on, and calls it `providerReference`;
   * stored before it is told to move money, so that an operation without this event never moved any.
   */
  PaymentProviderOpened: z.strictObject({ ...operation, providerReference: providerCode }),
  /** The provider reserved `amount`. */
  PaymentAuthorized: z.strictObject(approval),
  /** The provider took `amount`; `releasedAmount` (from 1) is what a partial capture gave back. */
  PaymentCaptured: z.strictObject({ ...approval, releasedAmount: amountMinor.optional() }),
  /** The whole authorization was released; `amount` is the authorized amount. */
  PaymentVoided: z.strictObject(approval),
  /** The provider gave `amount` back. */
  PaymentRefunded: z.strictObject(approval),
  /** The create was declined, never sent, or fenced. Final. */
  PaymentFailed: z.strictObject(decline),
  /** The intent to capture `amount`; stored before the provider is called. */
  PaymentCaptureRequested: z.strictObject(requested),
  /** The intent to void; stored before the provider is called. */
  PaymentVoidRequested: z.strictObject(requested),
  /** The intent to refund `amount`, reserved against the ceiling from here on. */
  PaymentRefundRequested: z.strictObject(requested),
  /** The capture did not happen; the payment stays AUTHORIZED. */
  PaymentCaptureDeclined: z.strictObject(decline),
  /** The void did not happen; the payment stays AUTHORIZED. */
  PaymentVoidDeclined: z.strictObject(decline),
  /** The refund did not happen; its reservation is released. */
  PaymentRefundDeclined: z.strictObject(decline),
  /** The provider let the authorization run out; `operationId` is the create's, `amount` all of it. */
  PaymentAuthorizationExpired: z.strictObject(operation),
  /** A refund that was approved bounced: its `amount` is refundable again. */
  PaymentRefundFailed: z.strictObject({
    ...operation,
    failureCode: z.enum(FAILURE_CODES),
    providerFailureCode: providerCode.optional(),
  }),
  /** A refund was made elsewhere; the provider calls it `refundId`, the operation id is its own here. */
  PaymentRefundObserved: z.strictObject({ ...operation, refundId: providerCode }),
  /** The cardholder disputes `amount`; `operationId` is the create's. */
  PaymentDisputed: z.strictObject({ ...operation, disputeId: providerCode, reason: providerCode }),
  /** The dispute ended for the merchant (WON) or against it (LOST). */
  PaymentDisputeClosed: z.strictObject({
    ...operation,
    disputeId: providerCode,
    status: z.enum(['WON', 'LOST']),
  }),
  /**
   * An operator requested that an unresolved operation be resolved by hand; nothing is recorded
   * until another operator requests the same (gaps §16). On a contradicted operation: that the
   * contradiction be ended (ADR-0099).
   */
  PaymentResolutionRequested: z.strictObject({
    ...operation,
    outcome: z.enum(['APPROVED', 'DECLINED']),
    evidence,
    withoutFence: z.literal(true).optional(),
    requestedBy: text,
  }),
  /**
   * What was resolved by hand stands: the provider says the same, or, with `resolution`, two
   * operators ended a contradiction. The provider is not asked about the operation any more.
   */
  PaymentOutcomeConfirmed: z.strictObject({
    ...operation,
    outcome: providerOutcome,
    providerReference: providerCode.optional(),
    resolution: resolution.optional(),
  }),
  /** The provider says other than what was resolved by hand. Nothing is rewritten (gaps §16). */
  PaymentOutcomeContradicted: z.strictObject({
    ...operation,
    outcome: providerOutcome,
    providerReference: providerCode.optional(),
  }),
} as const;

/** The type name of an event of a payment. */
export type PaymentEventType = keyof typeof paymentSchemas;
/** Every event type, in the order of its first appearance in a payment's life. */
export const PAYMENT_EVENT_TYPES = Object.keys(paymentSchemas) as PaymentEventType[];

/** The data of an event type, at its current version. */
export type EventData<T extends PaymentEventType> = z.infer<(typeof paymentSchemas)[T]>;

/** One thing that happened to a payment, as the domain sees it. */
export type PaymentEvent = {
  [T in PaymentEventType]: { type: T; data: EventData<T> };
}[PaymentEventType];

/** An event with its revision, from 0, and its time: what a fold needs of a stored event. */
export type PlacedEvent = { revision: number; time: string; event: PaymentEvent };

/** The schema version that new events of each type are stored with (see upcast.ts). */
export const PAYMENT_VERSIONS: Record<PaymentEventType, number> = {
  PaymentCreated: 1,
  PaymentProviderOpened: 1,
  PaymentAuthorized: 1,
  PaymentCaptured: 1,
  PaymentVoided: 1,
  PaymentRefunded: 1,
  PaymentFailed: 1,
  PaymentCaptureRequested: 1,
  PaymentVoidRequested: 1,
  PaymentRefundRequested: 1,
  PaymentCaptureDeclined: 1,
  PaymentVoidDeclined: 1,
  PaymentRefundDeclined: 1,
  PaymentAuthorizationExpired: 1,
  PaymentRefundFailed: 1,
  PaymentRefundObserved: 1,
  PaymentDisputed: 1,
  PaymentDisputeClosed: 1,
  PaymentResolutionRequested: 1,
  PaymentOutcomeConfirmed: 1,
  PaymentOutcomeContradicted: 1,
};

/** The stream of a payment (gaps §6). */
export const streamOf = (paymentId: string): string => `payment-${paymentId}`;
/** The payment of a stream; undefined for a stream of another kind. */
export const paymentOf = (stream: string): string | undefined =>
  stream.startsWith('payment-') ? stream.slice('payment-'.length) : undefined;
