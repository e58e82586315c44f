/** A payment's schemas, in the contract's names and order; tests alone check responses by them. */
import { z } from 'zod';
import { Failure, PAYMENT_STATUSES, paymentDetails, paymentResponse } from '../payment/fields.ts';
import { ERROR_CODES } from './errors.ts';
import { choice, named, requestFields, time } from './fields.ts';

const { metadata, ...forms } = paymentDetails.shape;
const Metadata = metadata
  .unwrap()
  .meta({ id: 'Metadata', maxProperties: 20, description: metadata.description });

/** As requests give them. */
export const requestDetails = requestFields(forms);
const { previousFailures: _, ...details } = requestDetails;

export const PaymentStatus = choice(PAYMENT_STATUSES).meta({ id: 'PaymentStatus' });

export const PaymentResponse = named('PaymentResponse', {
  ...paymentResponse.shape,
  status: PaymentStatus,
  ...details,
  productItems: z.array(details.productItems.unwrap().element).optional(),
  metadata: Metadata.optional(),
});

export const PaymentFailureResponse = PaymentResponse.pick({
  paymentId: true,
  merchantReference: true,
  metadata: true,
  amount: true,
  currency: true,
})
  .extend({
    status: z.enum(['FAILED']).describe('Always FAILED. Nothing was charged.'),
    failure: Failure,
  })
  .meta({ id: 'PaymentFailureResponse' });

export const PaymentList = named('PaymentList', {
  payments: z.array(PaymentResponse),
  nextCursor: z
    .string()
    .optional()
    .describe(
      'There when there may be more: the next `cursor`. Also on a page with fewer payments than `limit`.',
    ),
});

export const ErrorBody = named('ErrorBody', {
  error: z.enum(ERROR_CODES).describe('Stable; docs/errors.md has an entry for each.'),
  message: z.string(),
  details: z.array(z.string()),
  timestamp: time(),
});
