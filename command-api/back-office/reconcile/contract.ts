import { z } from 'zod';
import { asNumber, moment, named, parameters, parameterText } from '../../../shared/http/fields.ts';
import { failureData } from '../../../shared/payment/fields.ts';
import { DIFFERENCE_KINDS, type Difference } from './differences.ts';

const side = z.record(z.string(), z.unknown());
const count = z.int().min(0);

/** How far back the schedule compares, and `payments reconcile` without `--since` or `--all`. */
export const WINDOW_DAYS = 45;

export const Reconciliation = named('Reconciliation', {
  ok: z.boolean().describe('True where everything was compared and there is no difference.'),
  since: z
    .string()
    .optional()
    .describe('Only what began then or later was compared; left out: everything.'),
  operations: count.describe('Operations in the log.'),
  atOtherProviders: count.describe(
    'Of these operations, those that were sent to another provider than the one that is set: not compared.',
  ),
  entries: count.describe("Entries in the provider's ledger."),
  unreadable: count.describe(
    'Events that cannot be read; `payments verify --all` names the first break.',
  ),
  unreadableEvents: z
    .array(
      z.object({
        paymentId: z.string(),
        position: z.string(),
        revision: count,
        reason: z.string(),
      }),
    )
    .describe('The first of them.'),
  notCompared: count.describe(
    'Waited for a counterpart where the comparison stopped: there were too many.',
  ),
  differences: z.array(
    z.object({
      kind: z.enum(DIFFERENCE_KINDS),
      operationId: z.string(),
      paymentId: z.string(),
      log: side.optional(),
      provider: side.optional(),
    }),
  ),
  more: count.describe('How many more there are than are listed.'),
  byKind: z
    .record(z.enum(DIFFERENCE_KINDS), count)
    .describe('How many differences there are of each kind.'),
});
export type Reconciliation = Omit<z.infer<typeof Reconciliation>, 'differences'> & {
  differences: Difference[];
};

export const ReconciliationParameters = parameters({
  since: moment().describe(
    `What began then or later is compared; left out: what began in the last ${WINDOW_DAYS} days. A ledger that can only be read from its start is compared with everything.`,
  ),
  all: z
    .enum(['true', 'false'], { error: 'must be true or false' })
    .default('false')
    .describe('Compare everything.'),
}).refine(({ since, all }) => since === undefined || all === 'false', {
  error: 'must not stand beside since',
  path: ['all'],
});
/** Without `since`: the last 45 days, or everything. */
export type ReconciliationPart = z.infer<typeof ReconciliationParameters>;

/** NO_ENTRY: a decline that the provider keeps no entry of. NOT_KNOWN: it is out of reach, late or at work. */
const FINDINGS = ['AGREES', 'DIFFERS', 'OPEN', 'NO_ENTRY', 'NOT_KNOWN'] as const;

const LIMIT_MAX = 100;
const LIMIT_DEFAULT = 20;
const LIMIT_FORM = `must be a whole number from 1 to ${LIMIT_MAX}`;
export const PaymentReconciliationParameters = parameters({
  limit: parameterText()
    .regex(/^[0-9]{1,3}$/, LIMIT_FORM)
    .transform(Number)
    .refine((limit) => limit >= 1 && limit <= LIMIT_MAX, LIMIT_FORM)
    .meta(asNumber(1, LIMIT_MAX))
    .default(LIMIT_DEFAULT)
    .describe('How many operations the provider is asked about: the last ones.'),
});

const found = z.object({
  outcome: z.enum(['APPROVED', 'DECLINED', 'NOT_FOUND', 'UNKNOWN']),
  providerReference: z.string().optional(),
  ...failureData.partial({ failureCode: true }).shape,
  providerFailureCode: z.string().optional(),
  authorizationExpiresAt: z.string().optional(),
  reason: z.string().optional(),
});

export const PaymentReconciliation = named('PaymentReconciliation', {
  paymentId: z.string(),
  merchantId: z.string(),
  ok: z
    .boolean()
    .describe(
      'True where the provider spoke of every operation, none differs, and nothing else came of the payment.',
    ),
  operations: z.array(
    z.object({
      operationId: z.string(),
      kind: z.enum(['AUTHORIZE', 'SALE', 'CAPTURE', 'VOID', 'REFUND']),
      amount: z.int().min(1),
      currency: z.string(),
      revision: count.describe('Of the intent.'),
      log: z.enum(['APPROVED', 'DECLINED', 'NOT_SENT', 'FENCED']).optional(),
      provider: found,
      finding: z.enum(FINDINGS),
      difference: z.enum(DIFFERENCE_KINDS).optional(),
      why: z.string(),
    }),
  ),
  notCompared: count.describe('Older operations that the provider was not asked about.'),
  unreadable: z
    .string()
    .optional()
    .describe('Why the events of the payment cannot be read: then nothing was compared.'),
});
export type PaymentReconciliation = z.infer<typeof PaymentReconciliation>;
