/**
 * The events of webhook endpoints: where a merchant wants to hear of its payments, and what it asked
 * of an endpoint. One stream a merchant, and one that names the merchants. Names of types and fields
 * are stored forms. They are not published and change no read model.
 */
import { z } from 'zod';
import { identity, paymentId, type RequestIdentity, text } from './event-fields.ts';

const endpointId = z.string().regex(/^we_[0-9A-Z]{26}$/);
const url = z.string().min(1).max(2048);
const description = z.string().max(255).optional();
/** Types of messages, such as `payment.captured`. */
const eventTypes = z
  .array(z.string().regex(/^[a-z_]{1,40}\.[a-z_]{1,40}$/))
  .max(40)
  .optional();
/** A position of the log, as its store writes it; left out: the start. */
const after = z
  .string()
  .regex(/^[0-9]{1,19}(\/[0-9]{1,19})?$/)
  .optional();
const time = z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

/** There where the request had an `Idempotency-Key` (gaps §20). */
const keyed = { identity: identity.optional() };

/** The schema of each event's data at its current version; strict, for encoding. */
export const webhookSchemas = {
  /** A merchant has its first endpoint; in the stream that names the merchants. */
  WebhookMerchantAdded: z.strictObject({ merchantId: text }),
  /** What happens after the position `after` is sent to the address. */
  WebhookEndpointCreated: z.strictObject({
    endpointId,
    merchantId: text,
    url,
    /** Left out: all but `payment.created`. */
    eventTypes,
    description,
    /** The form of the messages, for as long as the endpoint lives. */
    apiVersion: z.literal('v1'),
    after,
    ...keyed,
  }),
  /** Each field that is there is the new value. */
  WebhookEndpointChanged: z.strictObject({
    endpointId,
    url: url.optional(),
    eventTypes,
    description,
  }),
  /** The next secret signs from here on, beside it the one before until `oldExpiresAt`. */
  WebhookEndpointSecretRotated: z.strictObject({
    endpointId,
    secretNumber: z.int().min(2),
    oldExpiresAt: time,
    ...keyed,
  }),
  /** Nothing more is sent; what was sent up to here stays known. */
  WebhookEndpointDisabled: z.strictObject({
    endpointId,
    /** Requested by the merchant, 410 from the address, or 72 hours without a success. */
    reason: z.enum(['REQUESTED', 'GONE', 'UNREACHABLE']),
  }),
  /** Sending goes on: where it stopped, or after the position `after`. */
  WebhookEndpointEnabled: z.strictObject({
    endpointId,
    resumeFrom: z.enum(['checkpoint', 'now']),
    after,
  }),
  WebhookEndpointDeleted: z.strictObject({ endpointId }),
  /** One message of type `webhook.test`; its id is this event's. */
  WebhookTestRequested: z.strictObject({ endpointId, ...keyed }),
  /** Everything since a moment once more, or one event of a payment. */
  WebhookResendRequested: z.strictObject({
    endpointId,
    since: time.optional(),
    event: z.strictObject({ eventId: z.uuid(), paymentId, revision: z.int().min(0) }).optional(),
    ...keyed,
  }),
} as const;

type WebhookEventType = keyof typeof webhookSchemas;
/** The schema version that new events are stored with (see upcast.ts). */
export const WEBHOOK_VERSIONS: Record<WebhookEventType, number> = {
  WebhookMerchantAdded: 1,
  WebhookEndpointCreated: 1,
  WebhookEndpointChanged: 1,
  WebhookEndpointSecretRotated: 1,
  WebhookEndpointDisabled: 1,
  WebhookEndpointEnabled: 1,
  WebhookEndpointDeleted: 1,
  WebhookTestRequested: 1,
  WebhookResendRequested: 1,
};

/** One stored event of the family. */
export type WebhookEvent = {
  [T in WebhookEventType]: { type: T; data: z.infer<(typeof webhookSchemas)[T]> };
}[WebhookEventType];

/** What the request of an event is recognised by; undefined where it had no `Idempotency-Key`. */
export const identityOf = ({ data }: WebhookEvent): RequestIdentity | undefined =>
  'identity' in data ? data.identity : undefined;

/** What the names of all streams of the family begin with. */
export const WEBHOOK_STREAMS = 'webhooks-';
/** The stream that names every merchant with an endpoint. */
export const WEBHOOK_MERCHANTS_STREAM = `${WEBHOOK_STREAMS}merchants`;
/** The stream of one merchant's endpoints; `hash` is the SHA-256 of the merchant's id, in hex. */
export const webhookStreamOf = (hash: string): string => WEBHOOK_STREAMS + hash;
