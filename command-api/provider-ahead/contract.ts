/** The response of an acknowledgement, as a schema. */
import { z } from 'zod';

export const Acknowledgement = z
  .object({
    acknowledged: z
      .boolean()
      .describe('False where the provider was not ahead of the log: nothing had to be recorded.'),
    operations: z
      .int()
      .min(0)
      .describe("Operations on the last page of the provider's ledger that the log does not hold."),
    cursor: z
      .string()
      .optional()
      .describe('Up to here everything in the ledger is acknowledged; opaque.'),
  })
  .meta({ id: 'Acknowledgement' });
export type Acknowledgement = z.infer<typeof Acknowledgement>;
