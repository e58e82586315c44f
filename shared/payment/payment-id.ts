/** The form of a payment id; whoever takes one from outside checks it against this pattern. */
export const PAYMENT_ID = /^[A-Za-z0-9_-]{1,32}$/;
