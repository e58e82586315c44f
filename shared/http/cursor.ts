/** A cursor is the place of the last payment shown: new payments do not move the next page. */
import { z } from 'zod';
import { PAYMENT_ID } from '../payment/fields.ts';
import type { PaymentSearch } from '../read-models/port.ts';
import { orElse } from '../runtime/error-text.ts';

export type CursorPlace = NonNullable<PaymentSearch['after']>;

const place = z.tuple([z.iso.datetime({ precision: 3 }), z.string().regex(PAYMENT_ID)]);

export const cursorOf = ({ createdAt, paymentId }: CursorPlace): string =>
  Buffer.from(JSON.stringify([createdAt, paymentId])).toString('base64url');

export const placeAfter = (cursor: string): CursorPlace | undefined =>
  orElse(undefined, () => {
    const text = Buffer.from(cursor, 'base64url').toString('utf8');
    const [createdAt, paymentId] = place.parse(JSON.parse(text));
    return { createdAt, paymentId };
  });
