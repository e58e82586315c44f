/** The paymentId that a path names (gaps §2). */

/** What `details` say of a paymentId that is not well formed. */
export const PAYMENT_ID_FORM = 'paymentId must be 1 to 32 characters of A-Z, a-z, 0-9, _ and -';

/** The paymentId of a path when it is well formed (gaps §2), else undefined. */
export const parsePaymentId = (raw: string): string | undefined =>
  /^[A-Za-z0-9_-]{1,32}$/.test(raw) ? raw : undefined;
