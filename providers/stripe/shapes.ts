/** Every other field of Stripe's objects is ignored and goes nowhere. */
import { z } from 'zod';
import { networkCode } from '../../shared/payment/fields.ts';

/** The last second of the year 9999. */
const SECONDS_MAX = 253_402_300_799;

const id = (prefix: string) => z.string().regex(new RegExp(`^${prefix}_[A-Za-z0-9_]{1,60}$`));
const metadata = z.record(z.string(), z.string()).nullish();
const amount = z.int().min(0).max(Number.MAX_SAFE_INTEGER).brand<'Minor'>();
const code = z.string().nullish();
const optionalNetworkCode = networkCode.optional().catch(undefined);
const declineCodes = {
  code,
  decline_code: code,
  advice_code: code.catch(undefined),
  network_decline_code: optionalNetworkCode,
  network_advice_code: optionalNetworkCode,
};

export const stripeErrorBody = z.object({
  error: z.object({
    ...declineCodes,
    /** Only `idempotency_error` decides: a double and older versions name others. */
    type: code.catch(undefined),
    param: code,
    payment_intent: z.object({ id: z.string() }).nullish(),
  }),
});
export type StripeError = z.infer<typeof stripeErrorBody>['error'];

export const intentId = id('pi');
export const paymentIntent = z.object({
  object: z.literal('payment_intent'),
  id: intentId,
  amount,
  amount_received: amount.nullish(),
  capture_method: z.string(),
  currency: z.string(),
  created: z.int().min(0),
  status: z.string(),
  cancellation_reason: z.string().nullish(),
  last_payment_error: z.object(declineCodes).nullish(),
  next_action: z
    .object({ redirect_to_url: z.object({ url: z.url({ protocol: /^https$/ }) }) })
    .nullish()
    .catch(undefined),
  /** Its id alone where it was not expanded. */
  latest_charge: z
    .union([
      z.string(),
      z.object({
        status: z.string(),
        disputed: z.boolean().nullish(),
        amount_refunded: amount.nullish().catch(undefined),
        payment_method_details: z
          .object({ card: z.object({ capture_before: z.int().min(0).max(SECONDS_MAX) }) })
          .optional()
          .catch(undefined),
      }),
    ])
    .nullish(),
  metadata,
});
export type PaymentIntent = z.infer<typeof paymentIntent>;

export const refund = z.object({
  object: z.literal('refund'),
  id: z.string().regex(/^[a-z]{2,3}_[A-Za-z0-9_]{1,60}$/),
  amount,
  currency: z.string(),
  created: z.int().min(0),
  status: z.string().nullish(),
  failure_reason: code,
  payment_intent: z.string().nullish(),
  metadata,
});
export type Refund = z.infer<typeof refund>;

/** A refund made in the Dashboard does not say whose it is: its PaymentIntent does. */
export const refundWithIntent = refund.extend({
  payment_intent: z.union([z.string(), z.object({ metadata })]).nullish(),
});
export type RefundWithIntent = z.infer<typeof refundWithIntent>;

export const dispute = z.object({
  object: z.literal('dispute'),
  id: z.string().regex(/^(dp|du)_[A-Za-z0-9_]{1,60}$/),
  amount,
  currency: z.string(),
  reason: z.string(),
  status: z.string(),
  payment_intent: z.string().nullish(),
});
export type StripeDispute = z.infer<typeof dispute>;

export const disputeOfOurs = dispute.extend({
  payment_intent: z.object({ metadata: z.object({ paymentId: z.string() }) }),
});

const cardOfCustomer = {
  card: z
    .object({
      brand: z.string().nullish(),
      last4: z.string().nullish(),
      exp_month: z.int().nullish(),
      exp_year: z.int().nullish(),
      iin: z.string().nullish(),
    })
    .nullish(),
  /** Of a card that was saved. */
  customer: id('cus').nullish().catch(undefined),
};
export const paymentMethod = z.object({
  object: z.literal('payment_method'),
  id: id('pm'),
  ...cardOfCustomer,
});

export const confirmationToken = z.object({
  object: z.literal('confirmation_token'),
  payment_method_preview: z.object(cardOfCustomer),
});

export const listOf = <T extends z.ZodType>(item: T) =>
  z.object({ data: z.array(item), has_more: z.boolean() });
