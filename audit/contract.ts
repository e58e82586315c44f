/** Responses of the audit routes. Amounts: minor units; times: RFC 3339, UTC; positions: opaque. */
import { z } from 'zod';
import { named, noteText, REQUIRED, requiredOr, time } from '../shared/http/fields.ts';
import { PAYMENT_STATUSES } from '../shared/payment/fields.ts';

const hash = z.string().regex(/^[0-9a-f]{64}$/);
const minor = z.int().min(0);

/** The event's own amount, and the payment's amounts after the event. */
const AuditAmounts = named('AuditAmounts', {
  amount: minor,
  currency: z.string(),
  releasedAmount: minor.optional(),
  authorizedAmount: minor.optional(),
  capturedAmount: minor.optional(),
  refundedAmount: minor.optional(),
  refundableAmount: z.int().optional(),
});

const owned = { paymentId: z.string(), merchantId: z.string() };
const place = { position: z.string(), stream: z.string(), revision: z.int().min(0) };

/** The position is empty where the break is at no event, as for a removed stream. */
export const AuditBreak = named('AuditBreak', {
  ...place,
  reason: z.string(),
  digest: hash.optional().describe('SHA-256 of the text that stands there.'),
});
export type AuditBreak = z.infer<typeof AuditBreak>;
const broken = AuditBreak.optional();

export const AuditEvent = named('AuditEvent', {
  ...place,
  paymentId: z.string().optional(),
  type: z.string(),
  time: z.string(),
  actor: z.string(),
  requestId: z.string(),
  correlationId: z.string(),
  causationId: z.string(),
  id: z.string(),
  schemaVersion: z.int(),
  amounts: AuditAmounts.optional(),
  status: z.enum(PAYMENT_STATUSES).optional(),
  hash,
  previousHash: hash,
  data: z.record(z.string(), z.unknown()),
  why: z
    .string()
    .optional()
    .describe('What it says beside its type, in words for people; left out where that is all.'),
  /** No status and no amounts are shown from there on. */
  broken: z.string().optional(),
});
export type AuditEvent = z.infer<typeof AuditEvent>;

export const AuditUnreadableEvent = named('AuditUnreadableEvent', {
  ...place,
  paymentId: z.string().optional(),
  unreadable: z.string(),
  broken: z.string().optional(),
});
export type AuditUnreadableEvent = z.infer<typeof AuditUnreadableEvent>;

const anyEvent = z.union([AuditEvent, AuditUnreadableEvent]);

export const AuditTimeline = named('AuditTimeline', {
  ...owned,
  events: z.array(anyEvent),
  broken,
});
export type AuditTimeline = z.infer<typeof AuditTimeline>;

export const AuditFound = named('AuditFound', {
  ...owned,
  merchantReference: z.string().optional(),
  status: z.enum(PAYMENT_STATUSES),
  amount: minor,
  capturedAmount: minor,
  refundedAmount: minor,
  currency: z.string(),
  last4: z.string(),
  revision: z.int(),
  createdAt: z.string(),
  updatedAt: z.string(),
});
export type AuditFound = z.infer<typeof AuditFound>;

export const AuditSearchPage = named('AuditSearchPage', {
  payments: z.array(AuditFound),
  next: z.string().nullable(),
  searchedTo: z
    .string()
    .optional()
    .describe('Beside `next`: every payment that was created later has been searched.'),
});
export type AuditSearchPage = z.infer<typeof AuditSearchPage>;

export const AuditDifference = named('AuditDifference', {
  path: z.string(),
  was: z.unknown().optional(),
  now: z.unknown().optional(),
});

export const AuditState = named('AuditState', {
  ...owned,
  revision: z.int(),
  event: AuditEvent,
  /** What GET would have responded then (PaymentResponse of the merchants' document). */
  payment: z.record(z.string(), z.unknown()),
  now: z.object({ revision: z.int() }),
  differences: z.array(AuditDifference),
  broken,
});

/** In place of a state at or after the first event that does not verify. */
export const AuditNoState = named('AuditNoState', {
  ...owned,
  broken: AuditBreak,
});
export type AuditNoState = z.infer<typeof AuditNoState>;

export const AuditStateOrNone = z
  .union([AuditState, AuditNoState])
  .meta({ id: 'AuditStateOrNone' });

const AuditKeptHead = named('AuditKeptHead', {
  position: z.string(),
  found: z.boolean(),
  signature: z
    .enum(['GOOD', 'NOT_GOOD', 'NONE'])
    .optional()
    .describe('Of a manifest: only a good one can make LOG_BROKEN of a difference.'),
  notComparable: z.string().optional(),
});

/** `seals` fit; the last one covers the log up to `position`. */
const AuditSeals = named('AuditSeals', {
  seals: z.int(),
  eventsAfter: z.int(),
  position: z.string().optional(),
  keyId: z.string().optional(),
  /** The key that the seals were checked by; left out where none was known. */
  trustedKeyId: z.string().optional(),
});

const AuditKeys = named('AuditKeys', {
  opens: z.int(),
  erased: z.int(),
  missing: z.int().describe('Gone, and no event erased it.'),
  alive: z.int().describe('Still stored after its erasure.'),
  unreadable: z.int().describe('Changed, or its master key is not set.'),
  refused: z.int().describe('Another key, or a box that was changed or moved.'),
  named: z.array(AuditBreak).describe('The first 100 that neither open nor were erased.'),
});

/** `guarantee`: one chain over the whole log, one up to the last seal, or one within each stream. */
export const AuditVerification = named('AuditVerification', {
  ok: z.boolean(),
  finding: z
    .enum(['INTACT', 'BROKEN', 'INCOMPLETE', 'NOT_COMPARABLE'])
    .describe(
      'INCOMPLETE: the chain holds, and an event cannot be read or a seal is missing. NOT_COMPARABLE: no break, but the kept head proves nothing about what was verified.',
    ),
  guarantee: z.enum(['log', 'sealed', 'stream']),
  paymentId: z.string().optional(),
  merchantId: z.string().optional(),
  events: z.int(),
  erased: z.int().optional().describe('Payments whose texts of a person were erased.'),
  head: z.object({ ...place, hash, logHash: hash.optional() }).nullable(),
  /** The first break that no operator has acknowledged. */
  broken,
  breaks: z
    .object({
      count: z.int().min(0).describe('Breaks without an acknowledgement.'),
      unreadable: z
        .int()
        .optional()
        .describe('Of them: events that cannot be read; the chain holds.'),
      unsealed: z.int().optional().describe('Of them: a missing seal; the chain holds.'),
      named: z.array(AuditBreak).describe('The first 100 of them; a changed event comes first.'),
      acknowledged: z
        .array(AuditBreak.extend({ actor: z.string(), time: z.string(), note: z.string() }))
        .describe('By whom, when and why: they do not make the log broken.'),
    })
    .optional()
    .describe('Of the log, not of one payment.'),
  /** The first 100 payments that the read models know and the log lacks; else left out. */
  missingPayments: z.array(z.string()).optional(),
  keptHead: AuditKeptHead.optional(),
  /** Present when the whole log was verified and its store can be sealed. */
  sealed: AuditSeals.optional(),
  keys: AuditKeys.optional().describe(
    'Of each box, and not `ok` if it names one; left out where the log is BROKEN.',
  ),
});
export type AuditVerification = z.infer<typeof AuditVerification>;

export const AuditLogPage = named('AuditLogPage', {
  events: z.array(anyEvent),
  /** The first of them whose text does not have its hash. */
  broken,
  /** `from` of the next page; null only where the log is empty. */
  next: z.string().nullable(),
  atEnd: z.boolean(),
});

export const AuditForbidding = named('AuditForbidding', {
  revision: z.int(),
  position: z.string(),
  type: z.string(),
  time: z.string(),
  why: z.string(),
});
export type AuditForbidding = z.infer<typeof AuditForbidding>;

export const AuditExplanation = named('AuditExplanation', {
  paymentId: z.string(),
  command: z.enum(['capture', 'void', 'refund']),
  allowed: z.boolean(),
  /** Status, revision and currency are left out where there is `broken`. */
  status: z.enum(PAYMENT_STATUSES).optional(),
  revision: z.int().optional(),
  amount: minor.optional(),
  currency: z.string().optional(),
  /** The merchant's error; UNRESOLVED where an earlier operation would be looked up first. */
  code: z.string().optional(),
  details: z.array(z.string()),
  forbiddenBy: z.array(AuditForbidding),
  /** Earlier commands of this kind that were declined or never carried out. */
  declined: z.array(
    AuditForbidding.extend({
      failureCode: z.string(),
      providerFailureCode: z.string().optional(),
      outcome: z.string(),
    }),
  ),
  /** The first event that does not verify: every command is refused there. */
  broken,
});
export type AuditExplanation = z.infer<typeof AuditExplanation>;

export const LogStatus = named('LogStatus', {
  verification: z.object({
    lastRunAt: time().nullable().describe('When the whole log was last verified.'),
    lastOkAt: time().nullable().describe('When it was last verified without a break.'),
    broken: z
      .object({ ...place, reason: z.string() })
      .nullable()
      .describe('The break that the last verification found.'),
  }),
  seal: z
    .object({
      position: z.string().describe('The log is sealed up to here.'),
      sealedAt: time(),
      keyId: z.string(),
    })
    .nullable()
    .describe('The last seal that this process knows of; null where it has none.'),
});

export const AcknowledgeBreakRequest = z
  .strictObject(
    {
      stream: z
        .string({ error: requiredOr('must be a string') })
        .max(255, 'must be at most 255 characters'),
      revision: z
        .int({ error: requiredOr('must be an integer') })
        .min(0, 'must be an integer from 0'),
      reason: z
        .string({ error: requiredOr('must be a string') })
        .min(1, REQUIRED)
        .max(1000, 'must be at most 1000 characters'),
      digest: z
        .string({ error: 'must be a string' })
        .regex(/^[0-9a-f]{64}$/, 'must be 64 hexadecimal digits')
        .optional(),
      note: noteText('Why the break may stay; recorded.'),
    },
    {
      error:
        'the body must hold stream, revision, reason and note, and digest where the break has one',
    },
  )
  .meta({ id: 'AcknowledgeBreakRequest' });

export const BreakAcknowledged = named('BreakAcknowledged', {
  stream: z.string(),
  revision: z.int().min(0),
  reason: z.string(),
  note: z.string(),
  actor: z.string(),
  acknowledgedAt: time(),
});
