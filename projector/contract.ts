import { z } from 'zod';
import { named, parameters, time } from '../shared/http/fields.ts';

const parkedPayment = z.object({
  paymentId: z.string(),
  revision: z.int().min(0),
  reason: z.string(),
  since: time(),
});

const sum = z.int().min(0);

export const moneyShape = z.object({
  merchantId: z.string(),
  currency: z.string(),
  status: z.string(),
  amount: sum,
  authorizedAmount: sum,
  capturedAmount: sum,
  refundedAmount: sum,
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

const checksum = z.object({ documents: z.int().min(0), hash: z.string() });

const moneyDifference = z.object({
  paymentId: z.string(),
  served: moneyShape,
  inLog: z.union([moneyShape, z.null()]),
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
