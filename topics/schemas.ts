/**
 * The fields of each message that leaves the service. A field not `published` is never sent, also when an event
 * gains it. No name, e-mail, phone, postal or network address of a person and no free text that a person typed
 * is; of a card only bin, last4, brand and the results of 3-D Secure. New optional fields may be added
 * at any time. Anything else is a new version: an entry in MESSAGE_VERSIONS, and its old samples stay in
 * test/topics/topic-samples.
 */
import { z } from 'zod';
import { type PaymentEventType, paymentSchemas } from '../shared/payment/events.ts';
import {
  authorizationExpiresAt,
  Dispute,
  failureData,
  isPublished,
  paymentResponse,
  Transaction,
} from '../shared/payment/fields.ts';
import { type SealEvent, sealSchemas } from '../shared/payment/seal-events.ts';

/** The published part of a field, at any depth; undefined for none. */
const seen = (field: unknown): z.ZodType | undefined => {
  if (field instanceof z.ZodType && isPublished(field)) return field;
  if (field instanceof z.ZodOptional) return seen(field.unwrap())?.optional();
  if (field instanceof z.ZodObject) {
    const object = seenObject(field);
    return Object.keys(object.shape).length === 0 ? undefined : object;
  }
  const item = field instanceof z.ZodArray ? seen(field.element) : undefined;
  return item && z.array(item);
};

const seenObject = ({ shape }: z.ZodObject): z.ZodObject => {
  const fields = Object.entries(shape).map(([name, field]) => [name, seen(field)]);
  return z.object(Object.fromEntries(fields.filter(([, field]) => field !== undefined)));
};

const dataSeen = (schema: z.ZodObject): z.ZodObject =>
  Object.values(schema.shape).every(isPublished) ? schema : seenObject(schema);

const { details, card, ...created } = paymentSchemas.PaymentCreated.shape;
const { paymentId, merchantId, operationId, amount, currency, captureNow } = created;
const order = { card: seenObject(card), ...seenObject(details).shape };
const operation = z.object({ operationId, amount, currency });
const { outcome } = paymentSchemas.PaymentOutcomeConfirmed.shape;
const noted = operation.extend({ outcome });

const byType = Object.entries(paymentSchemas).map(([type, schema]) => [type, dataSeen(schema)]);
const seenOf: Record<PaymentEventType, z.ZodObject> = Object.fromEntries(byType);
export const publicEventData: typeof seenOf = {
  ...seenOf,
  PaymentCreated: z.object({ paymentId, merchantId, ...operation.shape, captureNow, ...order }),
  PaymentAuthorizationExpired: operation,
  PaymentRefundFailed: z.object(paymentSchemas.PaymentRefundFailed.shape),
  PaymentResolutionRequested: noted,
  PaymentOutcomeConfirmed: noted,
  PaymentOutcomeContradicted: noted,
};

const { status, amount: whole, ...sums } = paymentResponse.shape;
const { authorizedAmount, capturedAmount, refundedAmount, refundableAmount } = sums;
const count = z.int().min(0);
/** Minor units, also none. */
const sum = count;
const createdAt = z.iso.datetime();
const failure = z.object(failureData.shape).optional();

export const publicState = z.object({
  paymentId,
  merchantId,
  revision: count.describe('Of the last event in it; a lower one is out of date'),
  status,
  amount: sum.describe(whole.description ?? ''),
  authorizedAmount,
  capturedAmount,
  refundedAmount,
  refundableAmount,
  currency,
  captureNow,
  ...order,
  unresolvedOperations: count.describe('Intents that have no outcome yet'),
  transactionCount: count
    .optional()
    .describe('How many the payment has; left out by an earlier version, which sent all of them'),
  transactions: z
    .array(z.object({ ...Transaction.shape, id: z.string(), amount: sum, failure, createdAt }))
    .describe('The last 50, oldest first'),
  disputes: z
    .array(
      z.object({ ...Dispute.shape, id: z.string(), amount: sum, reason: z.string(), createdAt }),
    )
    .optional(),
  authorizationExpiresAt,
  personalDataErased: z.literal(true).optional().describe('Names were erased for good'),
  createdAt,
  updatedAt: createdAt,
});

/** The `data` on the seals topic: the whole event, which is public. */
export const publicSealData = {
  LogSealed: z.object(sealSchemas.LogSealed.shape),
  SealingKeyRotated: z.object(sealSchemas.SealingKeyRotated.shape),
} as const satisfies Record<SealEvent['type'], z.ZodType>;

export type MessageType = keyof typeof publicEventData | 'PaymentState' | SealEvent['type'];

const TYPES = [...Object.keys(publicEventData), 'PaymentState', ...Object.keys(publicSealData)];

/** Every type is at its first version. */
export const MESSAGE_VERSIONS = Object.fromEntries(TYPES.map((type) => [type, 1])) as Record<
  MessageType,
  number
>;

/** CloudEvents 1.0, with extensions of this service. */
export const envelope = z.object({
  specversion: z.literal('1.0'),
  id: z.string().min(1).describe('Unique; the same when a message is sent again'),
  source: z.string().describe('/payments/{merchantId}; of a seal /log'),
  type: z.string().regex(/^payments\.[A-Za-z]+\.v[0-9]+$/),
  subject: z.string().describe('The paymentId, of a seal log; also the key'),
  time: z.iso.datetime().describe('When the event was decided; order is by sequence alone'),
  datacontenttype: z.literal('application/json'),
  dataschema: z.string().regex(/^urn:payments:schema:[A-Za-z]+:[0-9]+$/),
  sequence: z
    .string()
    .regex(/^[0-9]{10}$/)
    .describe('The revision in the payment, or among the seals, from 0000000000, without a gap'),
  partitionsequence: z
    .string()
    .regex(/^(0|[1-9][0-9]*)$/)
    .optional()
    .describe('Events topic: the number in the partition, from 0, without a gap'),
  globalposition: z.string().describe('The place in the log of all payments; opaque'),
  correlationid: z.string().describe('Of the request that it goes back to'),
  causationid: z.string().describe('The event, else the request, that led to it'),
  hash: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .describe('SHA-256 of the stored event and the one before it'),
  traceparent: z
    .string()
    .optional()
    .describe('The trace of the request that it goes back to (W3C), where that was traced'),
  data: z.record(z.string(), z.unknown()),
});
export type CloudEvent = z.infer<typeof envelope>;
