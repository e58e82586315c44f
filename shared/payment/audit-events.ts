/** Accesses (ADR-0011), acknowledgements. Names are stored forms; not published, no read model changes. */
import { z } from 'zod';
import { type EventsOf, paymentId, text } from './fields.ts';

/** Stored forms, as the type names are. */
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
  'PEOPLE',
] as const;

export const auditSchemas = {
  /** The context names the reader; `merchantId` is `*` for a token of every merchant. */
  AuditAccessed: z.strictObject({
    action: z.enum(AUDIT_ACTIONS),
    merchantId: text,
    paymentId: paymentId.optional(),
    /** A query string; long runs of digits are cut to their last four. */
    parameters: z.string().max(1000).optional(),
  }),
  /**
   * An operator saw operations in the provider's ledger that the log lacks, and lets merchants move money again
   * (gaps §17). `cursor`: the ledger's end then. `operations`: how many of its last page the log lacked.
   * `provider`: whose ledger (ADR-0247); older events lack it.
   */
  ProviderAheadAcknowledged: z.strictObject({
    cursor: text,
    /** 0: the ledger's end was not found. */
    operations: z.int().min(0),
    provider: text.optional(),
  }),
  /** Both are check values (ADR-0105): keyed hashes that tell nothing about the secrets. */
  IdempotencySecretChanged: z.strictObject({ check: text, previousCheck: text }),
  /**
   * An operator has seen one break of the log: verifications list it, and it alone does not break the log.
   * `digest`: SHA-256 in hex of the event's text there, absent where the break is no event's.
   */
  LogBreakAcknowledged: z.strictObject({
    stream: z.string().max(255),
    revision: z.int().min(0),
    reason: z.string().min(1).max(1000),
    digest: z
      .string()
      .regex(/^[0-9a-f]{64}$/)
      .optional(),
    note: text,
  }),
  /** An operator has seen what would stay in the list of what needs a person (gaps §25). */
  AttentionAcknowledged: z.strictObject({
    id: text,
    reason: z.enum(['LOG_BROKEN', 'LEDGER_DIFFERS']),
    note: text,
  }),
} as const;

/** A stored event; the audit routes send AuditEvent (audit/contract.ts). */
export type AuditLogEvent = EventsOf<typeof auditSchemas>;

export type AccessEvent = Extract<AuditLogEvent, { type: 'AuditAccessed' }>;

/** Accesses go to a stream under the process's own ULID; streams that all read have fixed names. */
export const auditStreamOf = (id: string): string => `audit-${id}`;

export const ATTENTION_STREAM = 'audit-attention';
export const PROVIDER_AHEAD_STREAM = 'audit-provider-ahead';
export const SECRET_CHANGES_STREAM = 'audit-idempotency-secret';

/** Before a new ULID, so that no other event is in its way. */
export const ACKNOWLEDGEMENT_STREAMS = 'audit-log-break-';
