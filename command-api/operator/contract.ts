/** The bodies of the operator's routes over what is unresolved, as schemas. */
import { z } from 'zod';
import { holdsLongNumber } from '../../shared/runtime/card-numbers.ts';

const time = () => z.string().meta({ format: 'date-time' });
const operation = z.enum(['create', 'capture', 'void', 'refund']);
const amountMinor = z.int().min(1);

export const UnresolvedList = z
  .object({
    unresolved: z.array(
      z.object({
        paymentId: z.string(),
        merchantId: z.string(),
        operation,
        operationId: z.string(),
        amountMinor,
        since: time().describe('When the operation was requested.'),
        attempts: z.int().min(0).describe('How often the provider was asked in vain.'),
        nextAttemptAt: time().nullable(),
      }),
    ),
  })
  .meta({ id: 'UnresolvedList' });

const EVIDENCE_MAX = 1000;

export const ResolveRequest = z
  .strictObject(
    {
      outcome: z.enum(['approved', 'declined'], { error: 'must be one of approved, declined' }),
      evidence: z
        .string({ error: 'must be a string' })
        .refine((text) => text.trim() !== '' && text.length <= EVIDENCE_MAX, {
          error: `must be 1 to ${EVIDENCE_MAX} characters`,
        })
        .refine((text) => !holdsLongNumber(text), {
          error: 'must not hold a run of 12 digits or more: no card number may be kept',
        })
        .meta({
          minLength: 1,
          maxLength: EVIDENCE_MAX,
          description: 'Where the outcome is known from; recorded.',
        }),
      operationId: z
        .string({ error: 'must be a string' })
        .optional()
        .describe('Which operation, where several are unresolved.'),
    },
    { error: 'the body must hold outcome, evidence and at most operationId' },
  )
  .meta({ id: 'ResolveRequest' });

export const Resolution = z
  .object({
    paymentId: z.string(),
    operation,
    operationId: z.string(),
    amountMinor,
    outcome: z.enum(['APPROVED', 'DECLINED', 'NOT_SENT', 'FENCED']),
    status: z.string(),
    revision: z.int().min(0),
  })
  .meta({ id: 'Resolution' });
