import { z } from 'zod';
import {
  choice,
  limitParameter,
  named,
  noteText,
  parameters,
  shortParameter,
  time,
} from '../../../shared/http/fields.ts';

/** Stored in acknowledgements, and labels of metrics (gaps §25). */
export const ATTENTION_REASONS = [
  'UNRESOLVED',
  'RESOLUTION_REQUESTED',
  'CONTRADICTED',
  'PARKED_READ_MODEL',
  'PARKED_TOPIC',
  'UNREADABLE_EVENT',
  'LOG_BROKEN',
  'LOG_UNVERIFIED',
  'LEDGER_DIFFERS',
  'PROVIDER_AHEAD',
  'PROVIDER_MISCONFIGURED',
  'WEBHOOK_DISABLED',
] as const;
export type AttentionReason = (typeof ATTENTION_REASONS)[number];

const AttentionItem = named('AttentionItem', {
  id: z.string(),
  reason: z.enum(ATTENTION_REASONS),
  paymentId: z.string().optional(),
  subject: z
    .string()
    .describe('The id of the operation, payment or endpoint; else log, ledger or provider.'),
  since: time(),
  what: z.string().describe('One sentence.'),
  next: z.string().describe('A command of `payments` to begin with.'),
});
export type AttentionItem = z.infer<typeof AttentionItem>;

export const AttentionList = named('AttentionList', {
  items: z.array(AttentionItem),
  next: z.string().optional().describe('`cursor` of the next page; left out at the last one.'),
});
export type AttentionList = z.infer<typeof AttentionList>;

/** See `itemPlace`. */
const PLACE = /^[0-9TZ:.-]{24} att_[0-9A-Z]{26}$/;

export const AttentionParameters = parameters({
  cursor: shortParameter()
    .transform((cursor) => Buffer.from(cursor, 'base64url').toString())
    .refine((place) => PLACE.test(place), 'must be the next of a page')
    .optional()
    .meta({ description: 'The `next` of the page before.' }),
  reason: choice(ATTENTION_REASONS).optional(),
  limit: limitParameter(1_000, 100),
});

export const AttentionNote = z
  .strictObject(
    {
      note: noteText('What was found out; recorded.'),
    },
    { error: 'the body must hold note alone' },
  )
  .meta({ id: 'AttentionNote' });

export const AttentionAcknowledgement = named('AttentionAcknowledgement', {
  id: z.string(),
  reason: z.enum(ATTENTION_REASONS),
  note: z.string(),
  actor: z.string(),
  acknowledgedAt: time(),
});
export type AttentionAcknowledgement = z.infer<typeof AttentionAcknowledgement>;
