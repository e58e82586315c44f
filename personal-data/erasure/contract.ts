import { z } from 'zod';
import { named, requiredChoice, requiredText, time } from '../../shared/http/fields.ts';
import { erasure, TICKET } from '../../shared/payment/events.ts';

const ticket = requiredText()
  .regex(TICKET, 'must be 1 to 64 of A-Z a-z 0-9 . _ / -')
  .describe('Where the request is kept; recorded.');

export const EraseRequest = z
  .strictObject(
    { reason: requiredChoice(erasure.reason.options).describe('Recorded.'), ticket },
    { error: 'the body must hold reason and ticket' },
  )
  .meta({ id: 'EraseRequest' });

export const HoldRequest = z
  .strictObject({ ticket }, { error: 'the body must hold ticket' })
  .meta({ id: 'HoldRequest' });

export const PeopleSearch = z
  .strictObject(
    { email: requiredText(), after: requiredText().optional().describe('The `next` before.') },
    { error: 'the body must hold email and at most after' },
  )
  .meta({ id: 'PeopleSearch' });

export const PeopleFound = named('PeopleFound', {
  payments: z.array(z.string()),
  next: z.string().optional().describe('More payments have to be looked at: send it as `after`.'),
});
export type PeopleFound = z.infer<typeof PeopleFound>;

export const ErasureBody = named('Erasure', {
  paymentId: z.string(),
  heldBy: z.string().optional().describe('The ticket of a hold: nothing is erased.'),
  erasedAt: time().optional(),
  requestedBy: z.string().optional().describe('A second person has to request the same.'),
  expiresAt: time().optional().describe('Until then.'),
});
export type ErasureBody = z.infer<typeof ErasureBody>;
