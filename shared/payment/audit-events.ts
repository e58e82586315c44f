/**
 * The events of an audit stream: who read what (ADR-0011), and what an operator acknowledged. Names
 * of types and fields are stored forms. They are not published and change no read model.
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
  /**
   * An operator has seen that the provider holds operations which the log does not, and lets
   * merchants move money again (gaps §17). `cursor` is where the provider's ledger ended then,
   * `operations` how many of its last page the log did not hold. The event's context names the
   * operator; `provider` names whose cursor it is (ADR-0247), and is absent in older events.
   */
  ProviderAheadAcknowledged: z.strictObject({
    cursor: text,
    operations: z.int().min(1),
    provider: text.optional(),
  }),
  /**
   * The idempotency secret was changed (ADR-0105). Both are check values: keyed hashes that tell
   * nothing about the secrets.
   */
  IdempotencySecretChanged: z.strictObject({ check: text, previousCheck: text }),
  /**
   * An operator has seen one break of the log, as a verification named it, and what stood there then:
   * a verification lists it, and is not broken by it alone. `digest` is the SHA-256 in hex of the text
   * of the event there, and is absent where the break is no event's. The context names the operator.
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
} as const;

type AuditEventType = keyof typeof auditSchemas;
/** The schema version that new events are stored with (see upcast.ts). */
export const AUDIT_VERSIONS: Record<AuditEventType, number> = {
  AuditAccessed: 1,
  ProviderAheadAcknowledged: 2,
  IdempotencySecretChanged: 1,
  LogBreakAcknowledged: 1,
};

/** One stored event of the family. Not to be mixed up with AuditEvent, which audit routes send (audit/contract.ts). */
export type AuditLogEvent = {
  [T in AuditEventType]: { type: T; data: z.infer<(typeof auditSchemas)[T]> };
}[AuditEventType];

/** One stored access. */
export type AccessEvent = Extract<AuditLogEvent, { type: 'AuditAccessed' }>;

/**
 * An audit stream. For accesses each process writes to streams of its own, whose `id` is a new ULID;
 * what all processes read has a fixed name.
 */
export const auditStreamOf = (id: string): string => `audit-${id}`;

const ACKNOWLEDGEMENTS = auditStreamOf('log-break-');

/** The stream of one acknowledged break; `id` is a new ULID, so that nobody's event is in its way. */
export const acknowledgementStreamOf = (id: string): string => `${ACKNOWLEDGEMENTS}${id}`;

/** Whether a stream is one of those. */
export const isAcknowledgementStream = (stream: string): boolean =>
  stream.startsWith(ACKNOWLEDGEMENTS);
