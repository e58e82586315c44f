/** Every id that comes from outside is checked against it. */
export const PAYMENT_ID = /^[A-Za-z0-9_-]{1,32}$/;
