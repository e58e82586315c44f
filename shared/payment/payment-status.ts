/** The statuses of a payment (interface, "Payment response"), in the order in which a payment can reach them. */
export const PAYMENT_STATUSES = [
  'PENDING',
  'AUTHORIZED',
  'CAPTURED',
  'REFUNDED',
  'VOIDED',
  'FAILED',
] as const;
/** One of PAYMENT_STATUSES. */
export type PaymentStatus = (typeof PAYMENT_STATUSES)[number];
