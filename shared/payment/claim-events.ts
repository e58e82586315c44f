/** Which payment a merchant's reference names (gaps §8). Names of types and fields are stored forms. */
import { z } from 'zod';
import { type EventsOf, operation, paymentId, text } from './event-fields.ts';

export const claimSchemas = {
  MerchantReferenceClaimed: z.strictObject({ ...operation, paymentId, merchantId: text }),
} as const;

export type ClaimEvent = EventsOf<typeof claimSchemas>;

/** `hash` is the reference's keyed hash. */
export const referenceStreamOf = (hash: string): string => `merchant-reference-${hash}`;
