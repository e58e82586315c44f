/** Every event that a stream can hold: the five families, with their schemas and versions. */
import { AUDIT_VERSIONS, type AuditLogEvent, auditSchemas } from './audit-events.ts';
import { CLAIM_VERSIONS, type ClaimEvent, claimSchemas } from './claim-events.ts';
import { PAYMENT_VERSIONS, type PaymentEvent, paymentSchemas } from './payment-events.ts';
import { SEAL_VERSIONS, type SealEvent, sealSchemas } from './seal-events.ts';
import { WEBHOOK_VERSIONS, type WebhookEvent, webhookSchemas } from './webhook-events.ts';

/** One thing that happened, of any family; `type` says which. */
export type DomainEvent = PaymentEvent | ClaimEvent | AuditLogEvent | SealEvent | WebhookEvent;
/** The type name of any event. */
export type EventType = DomainEvent['type'];

/** The schema of the data of each event type, at its current version. */
export const EVENT_SCHEMAS = {
  ...paymentSchemas,
  ...claimSchemas,
  ...auditSchemas,
  ...sealSchemas,
  ...webhookSchemas,
};
/** The schema version that new events of each type are stored with. */
export const EVENT_VERSIONS: Record<EventType, number> = {
  ...PAYMENT_VERSIONS,
  ...CLAIM_VERSIONS,
  ...AUDIT_VERSIONS,
  ...SEAL_VERSIONS,
  ...WEBHOOK_VERSIONS,
};

/** True for a type that this version of the code has a schema for. */
export const isEventType = (type: string): type is EventType => Object.hasOwn(EVENT_SCHEMAS, type);

/** True for an event of a payment's stream. */
export const isPaymentEvent = (event: DomainEvent): event is PaymentEvent =>
  Object.hasOwn(paymentSchemas, event.type);
/** True for an event of a reference's stream. */
export const isClaimEvent = (event: DomainEvent): event is ClaimEvent =>
  Object.hasOwn(claimSchemas, event.type);
/** True for an event of the stream of seals. */
export const isSealEvent = (event: DomainEvent): event is SealEvent =>
  Object.hasOwn(sealSchemas, event.type);
/** True for an event of the streams of webhook endpoints. */
export const isWebhookEvent = (event: DomainEvent): event is WebhookEvent =>
  Object.hasOwn(webhookSchemas, event.type);
