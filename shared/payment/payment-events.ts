/**
 * The events of a payment's stream (gaps §6). Type names and field names are stored forms: never
 * renamed, only added to or upcast. Amounts are minor units, from 1. No schema has a field for a card
 * number or a CVV, and every schema is strict, so none can be stored.
 */
import { z } from 'zod';
import {
  ECI,
  EXEMPTIONS,
  THREE_D_SECURE_VERSIONS,
  UUID,
  WITHOUT_TWELVE_DIGITS,
} from './card-forms.ts';
import {
  amountMinor,
  type EventsOf,
  identity,
  operation,
  paymentId,
  text,
  utcTime,
} from './event-fields.ts';

const optionalText = z.string().max(255).optional();
/** As utcTime: the published schema has this text. */
const UTC = /^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$/;
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
export type FailureCode = (typeof FAILURE_CODES)[number];

/** What a merchant can do about a decline (gaps §23). */
export const ADVICES = [
  'DO_NOT_RETRY',
  'RETRY_LATER',
  'CORRECT_DATA',
  'AUTHENTICATE',
  'USE_ANOTHER_CARD',
] as const;

/** A code of the card network, verbatim (gaps §23). */
export const networkCode = z.string().regex(/^[A-Za-z0-9]{1,8}$/);

const failure = {
  failureCode: z.enum(FAILURE_CODES),
  providerFailureCode: providerCode.optional(),
  /** The provider's own; without it the failure code decides. */
  advice: z.enum(ADVICES).optional(),
  networkDeclineCode: networkCode.optional(),
  networkAdviceCode: networkCode.optional(),
};
export const failureData = z.strictObject(failure);
export type FailureData = z.infer<typeof failureData>;

const address = z.strictObject({
  street: optionalText,
  city: optionalText,
  country: optionalText,
  state: optionalText,
  zip: optionalText,
});

const goodsType = z.enum(['PHYSICAL', 'DIGITAL', 'MIXED']);

/** `__proto__` is no name of an object's own. */
export const METADATA_NAME = /^(?!__proto__$)[A-Za-z0-9_-]{1,40}$/;
/** The merchant's own names and values (gaps §22). */
export const metadata = z.record(z.string().regex(METADATA_NAME), z.string().max(255));

/** The parts of a create request that a payment keeps, apart from amount and card. */
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
  metadata: metadata.optional(),
});
export type PaymentDetails = z.infer<typeof paymentDetails>;

/** The results of a 3-D Secure authentication (gaps §21), without the cryptogram: it is kept nowhere. */
export const threeDSecure = z.strictObject({
  version: z.enum(THREE_D_SECURE_VERSIONS),
  eci: z.string().regex(ECI),
  transactionId: z.string().regex(UUID),
  exemption: z.enum(EXEMPTIONS).optional(),
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
 * Present where two operators resolved the operation by hand (ADR-0098): `requestedBy` requested it with
 * `requestEvidence`, and the actor of the event's context approved it with `evidence`. Events from
 * before the second person lack the first two.
 */
const resolution = z.strictObject({
  evidence,
  requestedBy: text.optional(),
  requestEvidence: evidence.optional(),
  withoutFence: z.literal(true).optional(),
});
export type Resolution = z.infer<typeof resolution>;

const ended = { ...operation, resolution: resolution.optional() };
const decline = {
  ...ended,
  ...failure,
  /** NOT_SENT and FENCED: proven never carried out, so the idempotency key is free again (gaps §7, §8). */
  outcome: z.enum(['DECLINED', 'NOT_SENT', 'FENCED']),
};
const approval = { ...ended, providerReference: providerCode.optional() };
/** As `http:pay.example/v1` (ADR-0247). Older events lack it: any provider that is set is asked. */
const provider = text.optional();
const requested = { ...operation, identity, provider, reason: optionalText };
const providerOutcome = z.enum(['APPROVED', 'DECLINED', 'FENCED']);

/** The schema of each event's data at its current version; strict, for encoding. */
export const paymentSchemas = {
  /** The intent to authorize or sell; stored before the provider is called, like each intent below. */
  PaymentCreated: z.strictObject({
    ...operation,
    paymentId,
    merchantId: text,
    captureNow: z.boolean(),
    card: maskedCard,
    details: paymentDetails,
    /** The merchant can send the shopper to the provider (gaps §21). */
    authentication: z.literal(true).optional(),
    identity,
    provider,
  }),
  /**
   * The provider has opened something to authorize or sell on, and calls it `providerReference`; stored
   * before the provider is told to move money, so an operation without this event never moved any.
   */
  PaymentProviderOpened: z.strictObject({ ...operation, providerReference: providerCode }),
  /**
   * The provider wants the shopper of a create, and waits until `expiresAt` (gaps §21); no money has
   * moved. The address of its page holds a secret, and is in no event.
   */
  PaymentAuthenticationRequested: z.strictObject({
    ...operation,
    expiresAt: z.string().regex(UTC),
  }),
  /** `authorizationExpiresAt` where the provider tells it; UTC, with milliseconds. */
  PaymentAuthorized: z.strictObject({
    ...approval,
    authorizationExpiresAt: utcTime.optional(),
  }),
  /** `releasedAmount` is what a partial capture gave back. */
  PaymentCaptured: z.strictObject({ ...approval, releasedAmount: amountMinor.optional() }),
  /** `amount` is the authorized amount. */
  PaymentVoided: z.strictObject(approval),
  PaymentRefunded: z.strictObject(approval),
  /** Final. */
  PaymentFailed: z.strictObject(decline),
  PaymentCaptureRequested: z.strictObject(requested),
  PaymentVoidRequested: z.strictObject(requested),
  /** `amount` is reserved from here on. */
  PaymentRefundRequested: z.strictObject(requested),
  PaymentCaptureDeclined: z.strictObject(decline),
  PaymentVoidDeclined: z.strictObject(decline),
  /** The reservation is released. */
  PaymentRefundDeclined: z.strictObject(decline),
  /** Noticed by this service, once, up to 48 h before `expiresAt` (gaps §24); nothing changes by it. */
  PaymentAuthorizationExpiring: z.strictObject({
    ...operation,
    expiresAt: utcTime,
  }),
  /** `operationId` is the create's, `amount` all of it. */
  PaymentAuthorizationExpired: z.strictObject(operation),
  /**
   * Captured elsewhere, as in the provider's dashboard. The operation id is its own here; the provider
   * calls what it was made on `providerReference`. `releasedAmount` as in PaymentCaptured.
   */
  PaymentCaptureObserved: z.strictObject({
    ...operation,
    providerReference: providerCode,
    releasedAmount: amountMinor.optional(),
  }),
  /** Canceled elsewhere; `amount` is the authorized amount. */
  PaymentVoidObserved: z.strictObject({ ...operation, providerReference: providerCode }),
  /** A refund that was approved bounced: its `amount` is refundable again. */
  PaymentRefundFailed: z.strictObject({ ...operation, ...failure }),
  /** A refund was made elsewhere; the provider calls it `refundId`, the operation id is its own here. */
  PaymentRefundObserved: z.strictObject({ ...operation, refundId: providerCode }),
  /** `operationId` is the create's. */
  PaymentDisputed: z.strictObject({ ...operation, disputeId: providerCode, reason: providerCode }),
  /** WON by the merchant, or LOST. */
  PaymentDisputeClosed: z.strictObject({
    ...operation,
    disputeId: providerCode,
    status: z.enum(['WON', 'LOST']),
  }),
  /**
   * An operator requested a resolution by hand; nothing is recorded until another operator requests the
   * same (gaps §16). On a contradicted operation: that the contradiction be ended (ADR-0099).
   */
  PaymentResolutionRequested: z.strictObject({
    ...operation,
    outcome: z.enum(['APPROVED', 'DECLINED']),
    evidence,
    withoutFence: z.literal(true).optional(),
    requestedBy: text,
  }),
  /**
   * The provider says the same as two operators, or, with `resolution`, two operators ended a
   * contradiction. The provider is not asked about the operation any more.
   */
  PaymentOutcomeConfirmed: z.strictObject({
    ...operation,
    outcome: providerOutcome,
    providerReference: providerCode.optional(),
    resolution: resolution.optional(),
  }),
  /** The provider says other than the operators. Nothing is rewritten (gaps §16). */
  PaymentOutcomeContradicted: z.strictObject({
    ...operation,
    outcome: providerOutcome,
    providerReference: providerCode.optional(),
  }),
} as const;

export type PaymentEventType = keyof typeof paymentSchemas;
/** Every event type, in the order of its first appearance in a payment's life. */
export const PAYMENT_EVENT_TYPES = Object.keys(paymentSchemas) as PaymentEventType[];

export type EventData<T extends PaymentEventType> = z.infer<(typeof paymentSchemas)[T]>;

export type PaymentEvent = EventsOf<typeof paymentSchemas>;

/** An event with its revision, from 0, and its time. */
export type PlacedEvent = { revision: number; time: string; event: PaymentEvent };

export const streamOf = (paymentId: string): string => `payment-${paymentId}`;
export const paymentOf = (stream: string): string | undefined =>
  stream.startsWith('payment-') ? stream.slice('payment-'.length) : undefined;
