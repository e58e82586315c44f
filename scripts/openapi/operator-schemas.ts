/** The bodies of the operators' routes and of reconciliation, for the second document. */
import { z } from 'zod';
import { DIFFERENCE_KINDS } from '../../command-api/reconcile/reconcile.ts';

const time = () => z.string().meta({ format: 'date-time' });
const operation = z.enum(['create', 'capture', 'void', 'refund']);
const amountMinor = z.int().min(1);

/** One side of a difference, as it knows the operation. */
const side = z.record(z.string(), z.unknown());

export const Reconciliation = z.object({
  ok: z.boolean().describe('True where there is no difference.'),
  operations: z.int().min(0).describe('Operations in the log.'),
  entries: z.int().min(0).describe("Entries in the provider's ledger."),
  unreadable: z.int().min(0).describe('Events that could not be read.'),
  differences: z.array(
    z.object({
      kind: z.enum(DIFFERENCE_KINDS),
      operationId: z.string(),
      paymentId: z.string(),
      log: side.optional(),
      provider: side.optional(),
    }),
  ),
  more: z.int().min(0).describe('How many more there are than are listed.'),
});

export const UnresolvedList = z.object({
  unresolved: z.array(
    z.object({
      paymentId: z.string(),
      merchantId: z.string(),
      operation,
      operationId: z.string(),
      amountMinor,
      since: time().describe('When it was asked for.'),
      attempts: z.int().min(0).describe('How often the provider was asked in vain.'),
      nextAttemptAt: time().nullable(),
    }),
  ),
});

export const ResolveRequest = z.strictObject({
  outcome: z.enum(['approved', 'declined']),
  evidence: z.string().min(1).max(1000).describe('Where the outcome is known from; recorded.'),
  operationId: z.string().optional().describe('Which one, where several are open.'),
});

export const Resolution = z.object({
  paymentId: z.string(),
  operation,
  operationId: z.string(),
  amountMinor,
  outcome: z.enum(['APPROVED', 'DECLINED', 'NOT_SENT', 'FENCED']),
  status: z.string(),
  revision: z.int().min(0),
});

export const ParkedList = z.object({
  parked: z.array(
    z.object({
      paymentId: z.string(),
      revision: z.int().min(0),
      reason: z.string(),
      since: time(),
    }),
  ),
});

export const ParkedRetry = z.object({
  paymentId: z.string(),
  whole: z.boolean().describe('True where its document is up to date now.'),
  at: z.int().min(0).optional(),
  reason: z.string().optional(),
});

const checksum = z.object({ documents: z.int().min(0), hash: z.string() });

const rebuild = z.object({
  state: z.enum(['running', 'done', 'failed']),
  startedAt: time(),
  endedAt: time().optional(),
  done: z.int().min(0).describe('Events that are in the new read models.'),
  total: z.int().min(0),
  perSecond: z.number(),
  secondsLeft: z.number(),
  result: z
    .object({
      events: z.int().min(0),
      seconds: z.number(),
      checkpoint: z.string().nullable(),
      old: checksum,
      new: checksum,
      equal: z.boolean().describe('False where the old read models were wrong.'),
    })
    .optional(),
  reason: z.string().optional().describe('Why it failed.'),
});

export const ProjectionList = z.object({
  projections: z.array(
    z.object({
      projection: z.string(),
      state: z.enum([
        'starting',
        'catching-up',
        'running',
        'backing-off',
        'standing-by',
        'stopped',
        'stuck',
      ]),
      checkpoint: z.string().nullable(),
      head: z.string().nullable().describe('Null where the event store is out of reach.'),
      lagEvents: z.int().min(0).nullable(),
      lagSeconds: z.number().nullable().describe('Age of the oldest event that waits.'),
      caughtUp: z.boolean(),
      parked: z.int().min(0),
      reason: z.string().optional(),
      rebuild: rebuild.nullable().describe('The running or the last one of this process.'),
    }),
  ),
});

export const RebuildStarted = z.object({
  status: z.literal('started'),
  progress: z.string().describe('Where to ask how far it is.'),
});
