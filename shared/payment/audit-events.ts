/**
 * The events of an audit stream: who read what (ADR-0011). Names of types and fields are stored
 * forms. They are not published and change no read model.
 */
import { z } from 'zod';
import { paymentId, text } from './event-fields.ts';

/** What an auditor can read; stored forms, as the type names are. */
export const AUDIT_ACTIONS = [
  'SEARCH',
  'EVENTS',
  'STATE',
  'VERIFY',
  'VERIFY_LOG',
  'LOG',
  'STREAM',
  'EXPORT',
  'EXPLAIN',
  'RECONCILE',
] as const;

/** The schema of each event's data at its current version; strict, for encoding. */
export const auditSchemas = {
  /** Who read is the context's actor; `merchantId` is what the token may see, `*` all of it. */
  AuditAccessed: z.strictObject({
    action: z.enum(AUDIT_ACTIONS),
    merchantId: text,
    paymentId: paymentId.optional(),
    /** As a query string; long runs of digits are cut to their last four. */
    parameters: z.string().max(1000).optional(),
  }),
} as const;

export type AuditEventType = keyof typeof auditSchemas;
/** The schema version that new events are stored with (see upcast.ts). */
export const AUDIT_VERSIONS: Record<AuditEventType, number> = { AuditAccessed: 1 };

/** One reading, as it is stored. What an audit route answers with is AuditEvent (audit/contract.ts). */
export type AuditLogEvent = {
  [T in AuditEventType]: { type: T; data: z.infer<(typeof auditSchemas)[T]> };
}[AuditEventType];

/** The stream that one process writes its readers into. */
export const auditStreamOf = (id: string): string => `audit-${id}`;
