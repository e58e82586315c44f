/**
 * Payment events (gaps §6) and all events by type. Type and field names are stored forms: never renamed, only
 * added to or upcast. Amounts: minor units, from 1. Schemas are strict and have no card number and no CVV.
 */
import { z } from 'zod';
import { type AuditLogEvent, auditSchemas } from './audit-events.ts';
import {
  amount,
  authorizationExpiresAt,
  captureNow,
  type EventsOf,
  failureData,
  identity,
  merchantId,
  operation,
  paymentId,
  providerCode,
  published,
  readForms,
  resolution,
  sealedForms,
  text,
  utcTime,
} from './fields.ts';
import { type SealEvent, sealSchemas } from './seal-events.ts';
import { type WebhookEvent, webhookSchemas } from './webhook-events.ts';

/** As utcTime: the published schema has this text. */
const UTC = /^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$/;

const ended = { ...operation, resolution: resolution.optional() };
const decline = {
  ...ended,
  ...failureData.shape,
  outcome: published(
    z.enum(['DECLINED', 'NOT_SENT', 'FENCED']),
    'NOT_SENT and FENCED: proven never carried out, so the idempotency key is free again.',
  ),
};
const opened = published(providerCode, "The provider's own id.");
const refundId = published(providerCode, "The provider's own id of the refund.");
const disputeId = published(providerCode, "The provider's own id of the dispute.");
const disputeReason = published(providerCode, "The provider's word.");
const providerReference = published(providerCode.optional(), "The provider's own id.");
const approval = { ...ended, providerReference };
const releasedAmount = published(
  amount.optional(),
  'Given back by a partial capture, in minor units.',
);
/** As `http:pay.example/v1` (ADR-0247). Older events lack it: any provider that is set is asked. */
const provider = text.optional();
const requested = { ...operation, identity, provider, reason: sealedForms.reason };
const providerOutcome = published(z.enum(['APPROVED', 'DECLINED', 'FENCED']), "The provider's.");

export const TICKET = /^[A-Za-z0-9._/-]{1,64}$/;
/** Closed, and a ticket is no free text: an erasure leaves no name behind. */
export const erasure = {
  reason: published(
    z.enum(['CONSUMER_REQUEST', 'RETENTION_ENDED', 'COURT_ORDER', 'STORED_BY_MISTAKE']),
    'Why names and addresses are erased.',
  ),
  ticket: z.string().regex(TICKET),
};

/** The schema of each event's data at its current version; strict, for encoding. */
export const paymentSchemas = {
  /** The intent to authorize or sell; stored before the provider is called, like each intent below. */
  PaymentCreated: z.strictObject({
    ...operation,
    paymentId,
    merchantId,
    captureNow,
    card: sealedForms.card,
    details: sealedForms.details,
    personal: sealedForms.personal,
    /** The merchant can send the shopper to the provider (gaps §21). */
    authentication: z.literal(true).optional(),
    identity,
    provider,
  }),
  /** The provider opened `providerReference`; stored before money may move: without this event none moved. */
  PaymentProviderOpened: z.strictObject({ ...operation, providerReference: opened }),
  /** The provider waits for the shopper (gaps §21); no money moved. No event has its page's secret address. */
  PaymentAuthenticationRequested: z.strictObject({
    ...operation,
    expiresAt: published(z.string().regex(UTC), 'Until then the shopper is waited for.'),
  }),
  PaymentAuthorized: z.strictObject({ ...approval, authorizationExpiresAt }),
  PaymentCaptured: z.strictObject({ ...approval, releasedAmount }),
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
    expiresAt: published(utcTime, 'When the authorization ends.'),
  }),
  /** `operationId` is the create's, `amount` all of it. */
  PaymentAuthorizationExpired: z.strictObject(operation),
  /** Captured elsewhere, as in the provider's dashboard, on `providerReference`; the operation id is ours. */
  PaymentCaptureObserved: z.strictObject({
    ...operation,
    providerReference: opened,
    releasedAmount,
  }),
  /** Canceled elsewhere; `amount` is the authorized amount. */
  PaymentVoidObserved: z.strictObject({ ...operation, providerReference: opened }),
  /** A refund that was approved bounced: its `amount` is refundable again. */
  PaymentRefundFailed: z.strictObject({ ...operation, ...failureData.shape }),
  /** A refund was made elsewhere; the provider calls it `refundId`, the operation id is its own here. */
  PaymentRefundObserved: z.strictObject({ ...operation, refundId }),
  /** `operationId` is the create's. */
  PaymentDisputed: z.strictObject({ ...operation, disputeId, reason: disputeReason }),
  /** WON by the merchant, or LOST. */
  PaymentDisputeClosed: z.strictObject({
    ...operation,
    disputeId,
    status: published(z.enum(['WON', 'LOST']), 'By the merchant.'),
  }),
  /** Takes effect once another operator requests it too (gaps §16). May end a contradiction (ADR-0099). */
  PaymentResolutionRequested: z.strictObject({
    ...operation,
    outcome: published(z.enum(['APPROVED', 'DECLINED']), "An operator's."),
    evidence: resolution.shape.evidence,
    withoutFence: z.literal(true).optional(),
    requestedBy: text,
  }),
  /** The provider agrees; with `resolution`: two operators ended a contradiction. It is not asked any more. */
  PaymentOutcomeConfirmed: z.strictObject({ ...approval, outcome: providerOutcome }),
  /** The provider says other than the operators. Nothing is rewritten (gaps §16). */
  PaymentOutcomeContradicted: z.strictObject({
    ...operation,
    outcome: providerOutcome,
    providerReference,
  }),
  /** Takes effect once another person requests the same (gaps §19). */
  PaymentErasureRequested: z.strictObject({ ...erasure, requestedBy: text }),
  /** Nothing is erased until the hold is released. */
  PaymentErasureHeld: z.strictObject({ ticket: erasure.ticket }),
  PaymentErasureReleased: z.strictObject({ ticket: erasure.ticket }),
  /** The keys of all boxes before it: erased from then on (docs/privacy.md). */
  PaymentPersonalDataErased: z.strictObject({
    ...erasure,
    keys: z.array(sealedForms.personal.shape.key),
    requestedBy: text,
  }),
} as const;

/** Version 1 of these had texts of a person in the clear; upcast.ts puts them into `clear`. */
const { PaymentCreated, PaymentCaptureRequested } = paymentSchemas;
const requestedAsRead = PaymentCaptureRequested.extend({ reason: readForms.reason });
const readSchemas = {
  ...paymentSchemas,
  PaymentCreated: PaymentCreated.extend({ personal: readForms.personal }),
  PaymentCaptureRequested: requestedAsRead,
  PaymentVoidRequested: requestedAsRead,
  PaymentRefundRequested: requestedAsRead,
};

export type PaymentEventType = keyof typeof paymentSchemas;
/** Every event type, in the order of its first appearance in a payment's life. */
export const PAYMENT_EVENT_TYPES = Object.keys(paymentSchemas) as PaymentEventType[];

export type EventData<T extends PaymentEventType> = z.infer<(typeof readSchemas)[T]>;

export type PaymentEvent = EventsOf<typeof readSchemas>;

/** An event with its revision, from 0, and its time. */
export type PlacedEvent = { revision: number; time: string; event: PaymentEvent };

export const streamOf = (paymentId: string): string => `payment-${paymentId}`;
export const paymentOf = (stream: string): string | undefined =>
  stream.startsWith('payment-') ? stream.slice('payment-'.length) : undefined;

/** Which payment a merchant's reference names (gaps §8). Names of types and fields are stored forms. */
const claimSchemas = {
  MerchantReferenceClaimed: z.strictObject({ ...operation, paymentId, merchantId }),
} as const;

export type ClaimEvent = EventsOf<typeof claimSchemas>;

/** `hash` is the reference's keyed hash. */
export const referenceStreamOf = (hash: string): string => `merchant-reference-${hash}`;

export type DomainEvent = PaymentEvent | ClaimEvent | AuditLogEvent | SealEvent | WebhookEvent;
export type EventType = DomainEvent['type'];

/** The schema of each type's data at its current version. */
export const EVENT_SCHEMAS = {
  ...paymentSchemas,
  ...claimSchemas,
  ...auditSchemas,
  ...sealSchemas,
  ...webhookSchemas,
};
/** What an upcast event fits. */
export const READ_SCHEMAS: typeof EVENT_SCHEMAS = Object.assign({}, EVENT_SCHEMAS, readSchemas);
/** Every other type is at version 1; a version that is raised needs its hop in upcast.ts. */
const RAISED: Partial<Record<EventType, number>> = {
  ProviderAheadAcknowledged: 2,
  PaymentCreated: 2,
  PaymentCaptureRequested: 2,
  PaymentVoidRequested: 2,
  PaymentRefundRequested: 2,
};
export const EVENT_VERSIONS = Object.fromEntries(
  Object.keys(EVENT_SCHEMAS).map((type) => [type, RAISED[type as EventType] ?? 1]),
) as Record<EventType, number>;

export const isEventType = (type: string): type is EventType => Object.hasOwn(EVENT_SCHEMAS, type);

export const isPaymentEvent = (event: DomainEvent): event is PaymentEvent =>
  Object.hasOwn(paymentSchemas, event.type);
export const isClaimEvent = (event: DomainEvent): event is ClaimEvent =>
  Object.hasOwn(claimSchemas, event.type);
export const isSealEvent = (event: DomainEvent): event is SealEvent =>
  Object.hasOwn(sealSchemas, event.type);
export const isWebhookEvent = (event: DomainEvent): event is WebhookEvent =>
  Object.hasOwn(webhookSchemas, event.type);
