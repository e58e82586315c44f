/**
 * The events of a reference's stream: which payment a merchant's reference names (gaps §8). Names of
 * types and fields are stored forms. Claims are not published and change no read model.
 */
import { z } from 'zod';
import { operation, paymentId, text } from './event-fields.ts';

/** The schema of each claim's data at its current version; strict, for encoding. */
export const claimSchemas = {
  /** A payment claims a merchant's reference. */
  MerchantReferenceClaimed: z.strictObject({ ...operation, paymentId, merchantId: text }),
} as const;

type ClaimEventType = keyof typeof claimSchemas;
/** The schema version that new claims are stored with (see upcast.ts). */
export const CLAIM_VERSIONS: Record<ClaimEventType, number> = { MerchantReferenceClaimed: 1 };

/** One claim of a reference, as it is stored. */
export type ClaimEvent = {
  [T in ClaimEventType]: { type: T; data: z.infer<(typeof claimSchemas)[T]> };
}[ClaimEventType];

/** The stream with the claims of a reference; `hash` is the reference's keyed hash. */
export const referenceStreamOf = (hash: string): string => `merchant-reference-${hash}`;
