/** The paymentId that a path names (gaps §2). */
import { PAYMENT_ID } from '../payment/payment-id.ts';

/** What `details` say of a paymentId that is not well formed. */
export const PAYMENT_ID_FORM = 'paymentId must be 1 to 32 characters of A-Z, a-z, 0-9, _ and -';

/** The paymentId of a path when it is well formed (gaps §2), else undefined. */
export const parsePaymentId = (raw: string): string | undefined =>
  PAYMENT_ID.test(raw) ? raw : undefined;
