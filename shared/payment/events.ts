import { z } from 'zod';
import { type AuditLogEvent, auditSchemas } from './audit-events.ts';
import { type EventsOf, operation, paymentId, text } from './fields.ts';
import { type PaymentEvent, paymentSchemas } from './payment-events.ts';
import { type SealEvent, sealSchemas } from './seal-events.ts';
import { type WebhookEvent, webhookSchemas } from './webhook-events.ts';

/** Which payment a merchant's reference names (gaps §8). Names of types and fields are stored forms. */
const claimSchemas = {
  MerchantReferenceClaimed: z.strictObject({ ...operation, paymentId, merchantId: text }),
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
/** Every other type is at version 1; a version that is raised needs its hop in upcast.ts. */
const RAISED: Partial<Record<EventType, number>> = { ProviderAheadAcknowledged: 2 };
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
