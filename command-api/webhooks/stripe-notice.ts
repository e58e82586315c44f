/**
 * A Stripe notice is read for its payment, its account and its signature (`Stripe-Signature:
 * t=…,v1=…`).
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { intentReference } from '../provider/stripe/look-up.ts';

export type Notice = {
  account: string | undefined;
  /** From our metadata, which PaymentIntents, their charges and our refunds have. */
  paymentId: string | undefined;
  /** The PaymentIntent, for what was made in the Dashboard, and disputes. */
  reference: string | undefined;
};

/** Every other field is ignored. */
export const noticeBody = z.object({
  account: z.string().nullish(),
  data: z.object({
    object: z.object({
      object: z.string().nullish(),
      id: z.string().nullish(),
      metadata: z.record(z.string(), z.unknown()).nullish(),
      payment_intent: z.unknown().optional(),
    }),
  }),
});

const OWN_PAYMENT_ID = /^pay_[0-9A-Z]{26}$/;
const ownPaymentId = (value: unknown): string | undefined =>
  typeof value === 'string' && OWN_PAYMENT_ID.test(value) ? value : undefined;

const parsed = (body: Buffer): unknown => {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
};

export const readNotice = (body: Buffer): Notice | undefined => {
  const read = noticeBody.safeParse(parsed(body)).data;
  if (read === undefined) return undefined;
  const { object, id, metadata, payment_intent: intent } = read.data.object;
  return {
    account: read.account ?? undefined,
    paymentId: ownPaymentId(metadata?.paymentId),
    reference: intentReference(object === 'payment_intent' ? id : intent),
  };
};

const TOLERANCE_S = 300;

const signatureOf = (secret: string, time: string, body: Buffer): Buffer =>
  createHmac('sha256', secret).update(`${time}.`).update(body).digest();

export const isSignedByStripe = (
  body: Buffer,
  header: string,
  secrets: readonly string[],
  nowMs: number,
): boolean => {
  const parts = header.split(',').map((part) => part.split('=', 2));
  const valuesOf = (name: string): string[] =>
    parts.flatMap(([key, value]) => (key?.trim() === name && value !== undefined ? [value] : []));
  const [time = '', ...others] = valuesOf('t');
  const ageS = Math.abs(nowMs / 1_000 - Number(time));
  if (others.length > 0 || !/^[0-9]{1,12}$/.test(time) || ageS > TOLERANCE_S) return false;
  const given = valuesOf('v1').filter((value) => /^[0-9a-f]{64}$/.test(value));
  const expected = secrets.map((secret) => signatureOf(secret, time, body));
  return given.some((value) =>
    expected.some((own) => timingSafeEqual(own, Buffer.from(value, 'hex'))),
  );
};
