/** The response of a reconciliation, as a schema. */
import { z } from 'zod';
import { DIFFERENCE_KINDS } from './differences.ts';

/** One side of a difference, as it knows the operation. */
const side = z.record(z.string(), z.unknown());

export const Reconciliation = z
  .object({
    ok: z.boolean().describe('True where everything was compared and there is no difference.'),
    operations: z.int().min(0).describe('Operations in the log.'),
    entries: z.int().min(0).describe("Entries in the provider's ledger."),
    unreadable: z
      .int()
      .min(0)
      .describe('Events that cannot be read; `payments verify --all` names the first break.'),
    unreadableEvents: z
      .array(
        z.object({
          paymentId: z.string(),
          position: z.string(),
          revision: z.int().min(0),
          reason: z.string(),
        }),
      )
      .describe('The first of them.'),
    notCompared: z
      .int()
      .min(0)
      .describe('Waited for a counterpart where the comparison stopped: there were too many.'),
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
    byKind: z
      .record(z.enum(DIFFERENCE_KINDS), z.int().min(0))
      .describe('How many differences there are of each kind.'),
  })
  .meta({ id: 'Reconciliation' });
