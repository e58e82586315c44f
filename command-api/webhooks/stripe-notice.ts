/** All that is read of a notice of Stripe's: which payment it may be about, and in which account. */
import { z } from 'zod';
import { intentReference } from '../provider/stripe/look-up.ts';

export type Notice = {
  /** The connected account that it is about. */
  account: string | undefined;
  /** From our metadata, which PaymentIntents, their charges and our refunds have. */
  paymentId: string | undefined;
  /** The PaymentIntent that it is about, for what was made in the Dashboard, and disputes. */
  reference: string | undefined;
};

/** The fields of an event that are read; every other one is ignored. */
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

/** As this service makes them. */
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

/** Undefined for a body that is no event. */
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
