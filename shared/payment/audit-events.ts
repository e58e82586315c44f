/**
 * The events of an audit stream: who read what (ADR-0011). Names of types and fields are stored
 * forms. They are not published and change no read model.
 */
import { z } from 'zod';
import { paymentId, text } from './event-fields.ts';

/** What an auditor can read. The names are stored forms, as the type names are. */
const AUDIT_ACTIONS = [
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
  /**
   * The event's context names who read; `merchantId` is the merchant whose payments the token may
   * see, `*` for those of every merchant.
   */
  AuditAccessed: z.strictObject({
    action: z.enum(AUDIT_ACTIONS),
    merchantId: text,
    paymentId: paymentId.optional(),
    /** The request's parameters as a query string; long runs of digits are cut to their last four. */
    parameters: z.string().max(1000).optional(),
  }),
} as const;

type AuditEventType = keyof typeof auditSchemas;
/** The schema version that new events are stored with (see upcast.ts). */
export const AUDIT_VERSIONS: Record<AuditEventType, number> = { AuditAccessed: 1 };

/** One stored access. Not to be mixed up with AuditEvent, which audit routes send (audit/contract.ts). */
export type AuditLogEvent = {
  [T in AuditEventType]: { type: T; data: z.infer<(typeof auditSchemas)[T]> };
}[AuditEventType];

/** An audit stream; each process writes to streams of its own, whose `id` is a new ULID. */
export const auditStreamOf = (id: string): string => `audit-${id}`;
