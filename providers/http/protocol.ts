import { z } from 'zod';
import {
  failureData,
  maskedCard,
  operation,
  requestCard,
  requestThreeDSecure,
  text,
} from '../../shared/payment/fields.ts';

/** A longer body is not read, on either side. */
export const BODY_BYTES_MAX = 65_536;

export const { operationId: operationIdShape } = operation;
const { amount, currency } = operation;
const everyOperation = { paymentId: operationIdShape, amount, currency };
const { token, number, holderName, cvv } = requestCard.shape;
const everyCard = { holderName, threeDSecure: z.object(requestThreeDSecure.shape).optional() };
const cardOperation = {
  ...everyOperation,
  card: z.union([
    z.object({ ...everyCard, token }),
    z.object({
      ...everyCard,
      number,
      expiryMonth: text,
      expiryYear: text,
      cvv,
    }),
  ]),
  descriptor: z.string().max(255).optional(),
  authentication: z.object({ returnUrl: text }).optional(),
  initiatedBy: z.enum(['CONSUMER', 'MERCHANT']).optional(),
};
const followUp = { ...everyOperation, authorizationId: operationIdShape };

export const operationBody = z.discriminatedUnion('kind', [
  z.object({ kind: z.enum(['AUTHORIZE', 'SALE']), ...cardOperation }),
  z.object({ kind: z.enum(['CAPTURE', 'VOID', 'REFUND']), ...followUp }),
]);

/** Describes a token before it is used (gaps §14). */
export const tokenQuestion = z.object({ token, merchantId: text });
export const tokenBody = z.object({
  ...maskedCard.pick({ last4: true, expiryMonth: true, expiryYear: true }).shape,
  brand: z.string().nullish(),
  bin: maskedCard.shape.bin.nullish(),
});

const { advice, networkDeclineCode, networkAdviceCode } = failureData.shape;

/** An offset can lead to a year of five digits, and to a longer text. */
const UTC_LENGTH = 24;

const outcome = {
  operationId: operationIdShape,
  outcome: z.enum(['APPROVED', 'DECLINED']),
  amount,
  currency,
  failureCode: z.string().nullish(),
  providerFailureCode: z.string().nullish(),
  // No outcome is doubted for the sake of these.
  advice: advice.catch(undefined),
  networkDeclineCode: networkDeclineCode.catch(undefined),
  networkAdviceCode: networkAdviceCode.catch(undefined),
  authorizationExpiresAt: z.iso
    .datetime({ offset: true })
    .transform((time) => new Date(time).toISOString())
    .refine((time) => time.length === UTC_LENGTH)
    .optional()
    .catch(undefined),
  providerReference: z.string(),
};

/** What is said of one operation. The shopper is needed for AUTHORIZE and SALE alone. */
export const responseBody = z.discriminatedUnion('outcome', [
  z.object(outcome),
  z.object({
    operationId: operationIdShape,
    outcome: z.literal('ACTION_REQUIRED'),
    amount,
    currency,
    nextAction: z.object({ type: z.literal('REDIRECT'), url: z.url({ protocol: /^https?$/ }) }),
    expiresAt: z.iso.datetime(),
  }),
  z.object({ operationId: operationIdShape, outcome: z.literal('FENCED') }),
]);

export const ledgerBody = z.object({
  operations: z.array(
    z.object({
      ...outcome,
      sequence: z.int().min(1),
      kind: z.enum(['AUTHORIZE', 'SALE', 'CAPTURE', 'VOID', 'REFUND']),
      paymentId: operationIdShape,
    }),
  ),
  next: z.int().min(1).nullable(),
  since: z.iso.datetime({ offset: true }).optional(),
});
