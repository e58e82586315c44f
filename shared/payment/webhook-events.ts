/** A stream per merchant, one that names them. Names are stored forms; not published, no read model changes. */
import { z } from 'zod';
import {
  type EventsOf,
  identity,
  paymentId,
  type RequestIdentity,
  text,
  utcTime,
} from './fields.ts';

const endpointId = z.string().regex(/^we_[0-9A-Z]{26}$/);
const url = z.string().min(1).max(2048);
const description = z.string().max(255).optional();
/** Types of messages, such as `payment.captured`. */
const eventTypes = z
  .array(z.string().regex(/^[a-z_]{1,40}\.[a-z_]{1,40}$/))
  .max(40)
  .optional();
/** A position of the log; left out: its start. */
const after = z
  .string()
  .regex(/^[0-9]{1,19}(\/[0-9]{1,19})?$/)
  .optional();

/** Present where the request had an `Idempotency-Key` (gaps §20). */
const keyed = { identity: identity.optional() };

export const webhookSchemas = {
  /** In the stream that names the merchants, with the first endpoint. */
  WebhookMerchantAdded: z.strictObject({ merchantId: text }),
  /** Events after the position `after` are sent to the address. */
  WebhookEndpointCreated: z.strictObject({
    endpointId,
    merchantId: text,
    url,
    /** Left out: all but `payment.created`. */
    eventTypes,
    description,
    apiVersion: z.literal('v1'),
    after,
    ...keyed,
  }),
  /** Each field that is present is the new value. */
  WebhookEndpointChanged: z.strictObject({
    endpointId,
    url: url.optional(),
    eventTypes,
    description,
  }),
  /** The next secret signs from here on; the one before signs with it until `oldExpiresAt`. */
  WebhookEndpointSecretRotated: z.strictObject({
    endpointId,
    secretNumber: z.int().min(2),
    oldExpiresAt: utcTime,
    ...keyed,
  }),
  WebhookEndpointDisabled: z.strictObject({
    endpointId,
    /** By request, after a 410, or after 72 hours without a success. */
    reason: z.enum(['REQUESTED', 'GONE', 'UNREACHABLE']),
  }),
  /** Sending goes on where it stopped, or after the position `after`. */
  WebhookEndpointEnabled: z.strictObject({
    endpointId,
    resumeFrom: z.enum(['checkpoint', 'now']),
    after,
  }),
  WebhookEndpointDeleted: z.strictObject({ endpointId }),
  /** Asks for one message of type `webhook.test`; its id is this event's. */
  WebhookTestRequested: z.strictObject({ endpointId, ...keyed }),
  /** Asks again for everything since a moment, or for one event. */
  WebhookResendRequested: z.strictObject({
    endpointId,
    since: utcTime.optional(),
    event: z.strictObject({ eventId: z.uuid(), paymentId, revision: z.int().min(0) }).optional(),
    ...keyed,
  }),
} as const;

export type WebhookEvent = EventsOf<typeof webhookSchemas>;

/** Undefined where the request had no `Idempotency-Key`. */
export const identityOf = ({ data }: WebhookEvent): RequestIdentity | undefined =>
  'identity' in data ? data.identity : undefined;

/** The names of all these streams begin so. */
export const WEBHOOK_STREAMS = 'webhooks-';
export const WEBHOOK_MERCHANTS_STREAM = `${WEBHOOK_STREAMS}merchants`;
