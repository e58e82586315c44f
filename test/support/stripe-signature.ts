import { createHmac } from 'node:crypto';

/** The `Stripe-Signature` of a notice whose body was signed at a time. */
export const stripeSignature = (body: string, secret: string, atMs = Date.now()): string => {
  const time = Math.floor(atMs / 1_000);
  return `t=${time},v1=${createHmac('sha256', secret).update(`${time}.${body}`).digest('hex')}`;
};
