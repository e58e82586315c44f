import { z } from 'zod';
import { CARD_TOKEN } from '../../../shared/payment/card.ts';
import {
  CARD_NUMBER,
  CRYPTOGRAM,
  ECI,
  EXEMPTIONS,
  THREE_D_SECURE_VERSIONS,
  UUID,
} from '../../../shared/payment/card-forms.ts';
import { ADVICES, networkCode } from '../../../shared/payment/payment-events.ts';

/** A longer body is not read, on either side. */
export const BODY_BYTES_MAX = 65_536;

export const operationIdShape = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/);

const amount = z.int().min(1).max(Number.MAX_SAFE_INTEGER);
const currency = z.string().regex(/^[A-Z]{3}$/);
const text = z.string().min(1).max(255);

const everyOperation = { paymentId: operationIdShape, amount, currency };
const everyCard = {
  holderName: text,
  threeDSecure: z
    .object({
      version: z.enum(THREE_D_SECURE_VERSIONS),
      eci: z.string().regex(ECI),
      cryptogram: z.string().regex(CRYPTOGRAM),
      transactionId: z.string().regex(UUID),
      exemption: z.enum(EXEMPTIONS).optional(),
    })
    .optional(),
};
const token = z.string().regex(CARD_TOKEN);
const cardOperation = {
  ...everyOperation,
  card: z.union([
    z.object({ ...everyCard, token }),
    z.object({
      ...everyCard,
      number: z.string().regex(CARD_NUMBER),
      expiryMonth: text,
      expiryYear: text,
      cvv: z.string().max(255).optional(),
    }),
  ]),
  descriptor: z.string().max(255).optional(),
  authentication: z.object({ returnUrl: text }).optional(),
  initiatedBy: z.enum(['CONSUMER', 'MERCHANT']).optional(),
};
const followUp = { ...everyOperation, authorizationId: operationIdShape };

export const operationBody = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('AUTHORIZE'), ...cardOperation }),
  z.object({ kind: z.literal('SALE'), ...cardOperation }),
  z.object({ kind: z.literal('CAPTURE'), ...followUp }),
  z.object({ kind: z.literal('VOID'), ...followUp }),
  z.object({ kind: z.literal('REFUND'), ...followUp }),
]);

/** Describes a token before it is used (gaps §14). */
export const tokenQuestion = z.object({ token, merchantId: text });
export const tokenBody = z.object({
  brand: z.string().nullish(),
  last4: z.string().regex(/^[0-9]{4}$/),
  expiryMonth: z.string().regex(/^(0[1-9]|1[0-2])$/),
  expiryYear: z.string().regex(/^[0-9]{4}$/),
  bin: z
    .string()
    .regex(/^[0-9]{6}([0-9]{2})?$/)
    .nullish(),
});

/** No outcome is doubted for its sake. */
const optionalNetworkCode = networkCode.optional().catch(undefined);

/** An offset can lead to a year of five digits, and to a longer text. */
const UTC_LENGTH = 24;

const outcome = {
  operationId: operationIdShape,
  outcome: z.enum(['APPROVED', 'DECLINED']),
  amount,
  currency,
  failureCode: z.string().nullish(),
  providerFailureCode: z.string().nullish(),
  advice: z.enum(ADVICES).optional().catch(undefined),
  networkDeclineCode: optionalNetworkCode,
  networkAdviceCode: optionalNetworkCode,
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
