/** Every event that a stream can hold: the three families, with their schemas and versions. */
import { AUDIT_VERSIONS, type AuditLogEvent, auditSchemas } from './audit-events.ts';
import { CLAIM_VERSIONS, type ClaimEvent, claimSchemas } from './claim-events.ts';
import { PAYMENT_VERSIONS, type PaymentEvent, paymentSchemas } from './payment-events.ts';

/** One thing that happened, of any family; `type` says which. */
export type DomainEvent = PaymentEvent | ClaimEvent | AuditLogEvent;
export type EventType = DomainEvent['type'];

export const EVENT_SCHEMAS = { ...paymentSchemas, ...claimSchemas, ...auditSchemas };
export const EVENT_VERSIONS: Record<EventType, number> = {
  ...PAYMENT_VERSIONS,
  ...CLAIM_VERSIONS,
  ...AUDIT_VERSIONS,
};

/** Tells a type that has a schema from a name of a later version, or of nothing. */
export const isEventType = (type: string): type is EventType => Object.hasOwn(EVENT_SCHEMAS, type);

export const isPaymentEvent = (event: DomainEvent): event is PaymentEvent =>
  Object.hasOwn(paymentSchemas, event.type);
export const isClaimEvent = (event: DomainEvent): event is ClaimEvent =>
  Object.hasOwn(claimSchemas, event.type);
