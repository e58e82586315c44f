/**
 * The cursor of a page of payments, newest first: the place of the last one shown, so that payments
 * made meanwhile do not move the next page. Its text is for this service alone to read.
 */
import { z } from 'zod';
import { PAYMENT_ID } from '../payment/event-fields.ts';
import type { PaymentSearch } from '../read-models/port.ts';

/** Where a page ended. */
export type Place = NonNullable<PaymentSearch['after']>;

const place = z.tuple([z.iso.datetime({ precision: 3 }), z.string().regex(PAYMENT_ID)]);

export const cursorOf = ({ createdAt, paymentId }: Place): string =>
  Buffer.from(JSON.stringify([createdAt, paymentId])).toString('base64url');

/** The place that a cursor names; undefined for a text that no page ended with. */
export const placeOf = (cursor: string): Place | undefined => {
  try {
    const text = Buffer.from(cursor, 'base64url').toString('utf8');
    const [createdAt, paymentId] = place.parse(JSON.parse(text));
    return { createdAt, paymentId };
  } catch {
    return undefined;
  }
};
