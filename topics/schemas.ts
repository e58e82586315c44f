/**
 * The fields of each message that leaves the service. A field not listed is never sent, also when an event
 * gains it. No name, e-mail, phone, postal or network address of a person and no free text that a person typed
 * is listed; of a card only bin, last4, brand and the results of 3-D Secure. New optional fields may be added
 * at any time. Anything else is a new version: an entry in MESSAGE_VERSIONS, and its old samples stay in
 * test/topics/topic-samples.
 */
import { z } from 'zod';
import { type PaymentEventType, paymentSchemas } from '../shared/payment/events.ts';
import { PUBLISHED } from '../shared/payment/fields.ts';
import { type SealEvent, sealSchemas } from '../shared/payment/seal-events.ts';
import { PAYMENT_STATUSES } from '../shared/payment/transitions.ts';

const created = paymentSchemas.PaymentCreated.shape;
const details = created.details.shape;
const decline = paymentSchemas.PaymentFailed.shape;
const approval = paymentSchemas.PaymentAuthorized.shape;

const amountFields = {
  amount: created.amount.describe('Minor units of the currency'),
  currency: created.currency.describe('ISO 4217'),
};
const operation = {
  operationId: created.operationId.describe('The same in an intent and in its outcome'),
  ...amountFields,
};

const cardSeen = z.object({
  bin: created.card.shape.bin.describe('The first six or eight digits'),
  last4: created.card.shape.last4,
  brand: created.card.shape.brand,
  threeDSecure: created.card.shape.threeDSecure.describe('Without the cryptogram'),
});

/** An item without its name, which is free text. */
const item = details.productItems.unwrap().element.shape;
const itemSeen = z.object({
  id: item.id,
  quantity: item.quantity,
  unitPrice: item.unitPrice.describe('Minor units of the currency'),
  goodsType: item.goodsType,
});

const orderSeen = {
  ...created.details.pick(PUBLISHED).shape,
  productItems: z.array(itemSeen).optional(),
  source: z.object(details.source.unwrap().shape).optional(),
  metadata: details.metadata.describe("The merchant's own names and values"),
};

const failureSeen = {
  failureCode: decline.failureCode,
  providerFailureCode: decline.providerFailureCode,
  advice: decline.advice.describe('What to do about it; left out by an earlier version'),
  networkDeclineCode: decline.networkDeclineCode.describe("The card network's code"),
  networkAdviceCode: decline.networkAdviceCode.describe("The card network's code of what to do"),
};

const declined = z.object({
  ...operation,
  ...failureSeen,
  outcome: decline.outcome.describe('NOT_SENT and FENCED: proven never carried out'),
});
const approved = z.object({ ...operation, providerReference: approval.providerReference });
const authorizationExpiresAt = approval.authorizationExpiresAt.describe(
  'When the authorization ends, where the provider tells it',
);
const { releasedAmount } = paymentSchemas.PaymentCaptured.shape;
const requested = z.object(operation);
const { outcome } = paymentSchemas.PaymentOutcomeConfirmed.shape;
const noted = z.object({ ...operation, outcome });

export const publicEventData = {
  PaymentCreated: z.object({
    paymentId: created.paymentId,
    merchantId: created.merchantId,
    ...operation,
    captureNow: created.captureNow.describe('true: a sale'),
    card: cardSeen,
    ...orderSeen,
  }),
  PaymentProviderOpened: paymentSchemas.PaymentProviderOpened,
  PaymentAuthenticationRequested: paymentSchemas.PaymentAuthenticationRequested,
  PaymentAuthorized: z.object({ ...approved.shape, authorizationExpiresAt }),
  PaymentCaptured: z.object({ ...approved.shape, releasedAmount }),
  PaymentVoided: approved,
  PaymentRefunded: approved,
  PaymentFailed: declined,
  PaymentCaptureRequested: requested,
  PaymentVoidRequested: requested,
  PaymentRefundRequested: requested,
  PaymentCaptureDeclined: declined,
  PaymentVoidDeclined: declined,
  PaymentRefundDeclined: declined,
  PaymentAuthorizationExpiring: paymentSchemas.PaymentAuthorizationExpiring,
  PaymentAuthorizationExpired: requested,
  PaymentCaptureObserved: paymentSchemas.PaymentCaptureObserved,
  PaymentVoidObserved: paymentSchemas.PaymentVoidObserved,
  PaymentRefundFailed: z.object({ ...operation, ...failureSeen }),
  PaymentRefundObserved: paymentSchemas.PaymentRefundObserved,
  PaymentDisputed: paymentSchemas.PaymentDisputed,
  PaymentDisputeClosed: paymentSchemas.PaymentDisputeClosed,
  PaymentResolutionRequested: noted,
  PaymentOutcomeConfirmed: noted,
  PaymentOutcomeContradicted: noted,
} as const satisfies Record<PaymentEventType, z.ZodType>;

const minorUnits = z.int().min(0).describe('Minor units of the currency');

const transaction = z.object({
  id: z.string(),
  type: z.enum(['AUTH', 'SALE', 'CAPTURE', 'VOID', 'REFUND']),
  amount: minorUnits,
  result: z.enum(['SUCCEEDED', 'FAILED']),
  failure: z.object(failureSeen).optional(),
  createdAt: z.iso.datetime(),
});

const dispute = z.object({
  id: z.string(),
  amount: minorUnits,
  reason: z.string(),
  status: z.enum(['OPEN', 'WON', 'LOST']),
  createdAt: z.iso.datetime(),
});

export const publicState = z.object({
  paymentId: created.paymentId,
  merchantId: created.merchantId,
  revision: z.int().min(0).describe('Of the last event in it; a lower one is out of date'),
  status: z.enum(PAYMENT_STATUSES),
  amount: minorUnits,
  authorizedAmount: minorUnits,
  capturedAmount: minorUnits,
  refundedAmount: minorUnits,
  refundableAmount: minorUnits,
  currency: created.currency,
  captureNow: created.captureNow,
  card: cardSeen,
  ...orderSeen,
  unresolvedOperations: z.int().min(0).describe('Intents that have no outcome yet'),
  transactionCount: z
    .int()
    .min(0)
    .optional()
    .describe('How many the payment has; left out by an earlier version, which sent all of them'),
  transactions: z.array(transaction).describe('The last 50, oldest first'),
  disputes: z.array(dispute).optional(),
  authorizationExpiresAt,
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
});

const seal = sealSchemas.LogSealed.shape;
const rotation = sealSchemas.SealingKeyRotated.shape;

/** The `data` on the seals topic: the whole event, which is public. */
export const publicSealData = {
  LogSealed: z.object({
    ...seal,
    log: seal.log.describe('The id of the log'),
    position: seal.position.describe('Of the last event that is sealed'),
    logHash: seal.logHash.describe('Of the log up to that position; no later log may have another'),
    publicKey: seal.publicKey.describe('Ed25519, raw, in base64url'),
    keyId: seal.keyId.describe('The first 16 hex digits of the SHA-256 of the public key'),
    eventsMax: seal.eventsMax.describe('After how many events the next seal is due'),
  }),
  SealingKeyRotated: z.object({
    ...rotation,
    log: rotation.log.describe('The id of the log'),
    position: rotation.position.describe('Of the last event that both keys seal'),
    newPublicKey: rotation.newPublicKey.describe(
      'Ed25519, raw, in base64url; of the seals from here on',
    ),
    signature: rotation.signature.describe('Of the old key, over all the rest'),
    newSignature: rotation.newSignature.describe('Of the new key, over the same'),
  }),
} as const satisfies Record<SealEvent['type'], z.ZodType>;

export type MessageType = PaymentEventType | 'PaymentState' | SealEvent['type'];

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
