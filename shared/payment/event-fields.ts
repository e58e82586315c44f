/** The fields that events of more than one family have, as schemas for encoding. */
import { z } from 'zod';
import { PAYMENT_ID } from './payment-id.ts';

/** A text of 1 to 255 characters. */
export const text = z.string().min(1).max(255);
/** An amount in minor units, from 1. */
export const amountMinor = z.int().min(1).max(Number.MAX_SAFE_INTEGER);
/** A payment id. */
export const paymentId = z.string().regex(PAYMENT_ID);

/**
 * What makes a repeat recognisable (gaps §8): `fingerprint` is a keyed hash of the parsed
 * request; `keyHash` is a keyed hash of merchant, route, payment or webhook endpoint, and
 * `Idempotency-Key`, present only when the request had a key.
 */
export const identity = z.strictObject({ fingerprint: text, keyHash: text.optional() });
/** What a repeated request is recognised by. */
export type RequestIdentity = z.infer<typeof identity>;

/** The operation that an event was made for, its amount and the amount's currency. */
export const operation = {
  operationId: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/),
  amount: amountMinor,
  currency: z.string().regex(/^[A-Z]{3}$/),
};
