/** Fields that events of more than one family have, as schemas for encoding. */
import { z } from 'zod';

/** Every id that comes from outside is checked against it. */
export const PAYMENT_ID = /^[A-Za-z0-9_-]{1,32}$/;

export const text = z.string().min(1).max(255);
/** In minor units. */
export const amountMinor = z.int().min(1).max(Number.MAX_SAFE_INTEGER);
/** A moment in the form of the events' times. */
export const utcTime = z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
export const paymentId = z.string().regex(PAYMENT_ID);

/**
 * Recognises a repeat (gaps §8): `fingerprint` is a keyed hash of the parsed request; `keyHash` is one
 * of merchant, route, payment or webhook endpoint, and `Idempotency-Key`, absent without a key.
 */
export const identity = z.strictObject({ fingerprint: text, keyHash: text.optional() });
export type RequestIdentity = z.infer<typeof identity>;

/** The operation that an event was made for, and its amount. */
export const operation = {
  operationId: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/),
  amount: amountMinor,
  currency: z.string().regex(/^[A-Z]{3}$/),
};

/** The events of a family, by its schemas. */
export type EventsOf<S extends Record<string, z.ZodType>> = {
  [T in keyof S & string]: { type: T; data: z.infer<S[T]> };
}[keyof S & string];
