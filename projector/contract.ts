import { z } from 'zod';
import { named, noteText, parameters, REQUIRED, requiredOr } from '../shared/http/fields.ts';
import { RELAY_STATES } from '../topics/status.ts';

const time = () => z.string().meta({ format: 'date-time' });

const parkedPayment = z.object({
  paymentId: z.string(),
  revision: z.int().min(0),
  reason: z.string(),
  since: time(),
});

const sum = () => z.int().min(0);

export const money = z.object({
  merchantId: z.string(),
  currency: z.string(),
  status: z.string(),
  amount: sum(),
  authorizedAmount: sum(),
  capturedAmount: sum(),
  refundedAmount: sum(),
  refundableAmount: z.int(),
});

export const ParkedList = named('ParkedList', { parked: z.array(parkedPayment) });
export type ParkedList = z.infer<typeof ParkedList>;

export const ParkedRetry = named('ParkedRetry', {
  paymentId: z.string(),
  whole: z.boolean().describe('True where the document of the payment is up to date now.'),
  at: z.int().min(0).optional(),
  reason: z.string().optional(),
});
export type ParkedRetry = z.infer<typeof ParkedRetry>;

const relayParked = z.object({
  paymentId: z.string(),
  from: z.int().min(0).describe('The first revision whose messages wait.'),
  to: z.int().min(0).describe('The last one.'),
  reason: z.string().describe('Why `from` could not be sent, in 100 characters.'),
  since: time(),
});

export const RelayParkedList = named('RelayParkedList', {
  state: z.enum(RELAY_STATES).describe('Of the relay in this process.'),
  error: z.string().optional().describe('Why the relay backs off or has halted.'),
  count: z.int().min(0).describe('Payments that are parked.'),
  parked: z.array(relayParked).describe('The first 1,000 of them, the longest parked first.'),
});
export type RelayParkedList = z.infer<typeof RelayParkedList>;

export const RelayParkedRetry = named('RelayParkedRetry', {
  paymentId: z.string(),
  sent: z.boolean().describe('True where all that waited is sent and acknowledged.'),
  at: z.int().min(0).optional().describe('The revision that still cannot be sent.'),
  reason: z.string().optional(),
});
export type RelayParkedRetry = z.infer<typeof RelayParkedRetry>;

export const RelayParkedRetries = named('RelayParkedRetries', {
  retried: z.array(RelayParkedRetry).describe('At most 100.'),
  left: z.int().min(0).describe('Parked payments that this request has not tried.'),
});
export type RelayParkedRetries = z.infer<typeof RelayParkedRetries>;

const checksum = z.object({ documents: z.int().min(0), hash: z.string() });

const moneyDifference = z.object({
  paymentId: z.string(),
  served: money,
  inLog: z.union([money, z.null()]),
});

const rebuilt = z.object({
  events: z.int().min(0),
  seconds: z.number(),
  checkpoint: z.string().nullable(),
  old: checksum,
  new: checksum,
  equal: z.boolean().describe('False if the old read models differed.'),
  served: z
    .boolean()
    .describe('False where the old ones are still served, because they say other money.'),
  money: z.object({ count: z.int().min(0), named: z.array(moneyDifference) }),
  parked: z.array(parkedPayment),
});

const rebuildState = z.object({
  state: z.enum(['running', 'done', 'failed']),
  startedAt: time(),
  endedAt: time().optional(),
  done: z.int().min(0).describe('Events that are in the new read models.'),
  total: z.int().min(0).describe('Events that are in the log.'),
  estimated: z.boolean().describe('Whether `total` is an estimate: EventStoreDB has no count.'),
  perSecond: z.number(),
  secondsLeft: z.number(),
  result: rebuilt.optional(),
  reason: z.string().optional().describe('Why it failed.'),
});

export type RebuildState = z.infer<typeof rebuildState>;

const projection = z.object({
  projection: z.string(),
  state: z.enum([
    'starting',
    'catching-up',
    'running',
    'backing-off',
    'falling-behind',
    'standing-by',
    'stopped',
    'stuck',
  ]),
  checkpoint: z.string().nullable(),
  head: z.string().nullable().describe('Null where the event store is out of reach.'),
  lagEvents: z.int().min(0).nullable(),
  lagIsExact: z
    .boolean()
    .nullable()
    .describe('False where `lagEvents` is at least so many: EventStoreDB counts 1,000.'),
  lagSeconds: z.number().nullable().describe('Age of the oldest event that is not applied yet.'),
  caughtUp: z.boolean(),
  parked: z.int().min(0),
  reason: z.string().optional(),
  rebuild: rebuildState
    .nullable()
    .describe('The running rebuild of this process, else its last one.'),
});

export const ProjectionList = named('ProjectionList', { projections: z.array(projection) });
export type ProjectionList = z.infer<typeof ProjectionList>;

const place = z.object({
  position: z.string(),
  stream: z.string(),
  revision: z.int().min(0),
  reason: z.string(),
});

export const LogStatus = named('LogStatus', {
  verification: z.object({
    lastRunAt: time().nullable().describe('When the whole log was last verified.'),
    lastOkAt: time().nullable().describe('When it was last verified without a break.'),
    broken: place.nullable().describe('The break that the last verification found.'),
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

export const RebuildStarted = named('RebuildStarted', {
  status: z.literal('started'),
  progress: z.string().describe('The path of the status, which shows the progress.'),
});

export const RebuildParameters = parameters({
  accept: z
    .enum(['true', 'false'], { error: 'must be true or false' })
    .default('false')
    .describe('Serve the new read models also where the old ones say other money.'),
});

export const ReadModelsComparison = named('ReadModelsComparison', {
  documents: z.int().min(0),
  payments: z.int().min(0).describe('Payments that the log has.'),
  differences: z.int().min(0),
  kinds: z.record(z.string(), z.int().min(1)).describe('How many of each kind.'),
  named: z
    .array(z.object({ paymentId: z.string(), kind: z.string(), detail: z.string() }))
    .describe('The first 100.'),
});
export type ReadModelsComparison = z.infer<typeof ReadModelsComparison>;
