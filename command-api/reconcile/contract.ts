/** The response of a reconciliation, as a schema. */
import { z } from 'zod';
import { DIFFERENCE_KINDS } from './reconcile.ts';

/** One side of a difference, as it knows the operation. */
const side = z.record(z.string(), z.unknown());

export const Reconciliation = z
  .object({
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
  })
  .meta({ id: 'Reconciliation' });
