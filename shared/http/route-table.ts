/** Every route with a token or a signature; API documents, `405` and the gateway's check use it. */
import type { Scope } from './auth/principal.ts';

export type Service = 'command-api' | 'query-api' | 'audit' | 'projector';

/** In place of a scope: the sender has no token and signs the body. */
export const SIGNED = 'signed';

export type RoutePlace = {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  path: `/${string}`;
  scope: Scope | typeof SIGNED;
  service: Service;
  /** A route without it is in no API document. */
  summary?: string;
  description?: string;
};

export const ROUTES = {
  createPayment: {
    method: 'POST',
    path: '/api/v1/payments',
    scope: 'payments:write',
    service: 'command-api',
    summary: 'Create a payment',
    description:
      'Authorizes, or with `captureNow` authorizes and captures in one step. The response is a 200 or a 402 only when the provider has responded. Amounts are written without a decimal point: 25.00 is 400. An unknown field is ignored, but a name that differs from a field of this request only in upper and lower case, `_` or `-` is 400, `captureNow is misspelled`.',
  },
  listPayments: {
    method: 'GET',
    path: '/api/v1/payments',
    scope: 'payments:read',
    service: 'query-api',
    summary: 'List payments',
    description:
      'An addition. The own payments, newest first. A page ends at `limit` payments or at 256 KiB of them, and with `nextCursor` while there may be more, also one with fewer payments than `limit`; payments made meanwhile do not move the pages that follow.',
  },
  getPayment: {
    method: 'GET',
    path: '/api/v1/payments/:paymentId',
    scope: 'payments:read',
    service: 'query-api',
    summary: 'Get a payment',
    description:
      "As of now, whatever was answered before. `ETag` is its revision. Another merchant's payment is answered as one that does not exist.",
  },
  capturePayment: {
    method: 'POST',
    path: '/api/v1/payments/:paymentId/capture',
    scope: 'payments:write',
    service: 'command-api',
    summary: 'Capture a payment',
    description:
      'Takes the authorized amount, or `captureAmount` of it; the rest is released. `amount` is an alias. Without an amount no field but `reason` may stand in the body.',
  },
  voidPayment: {
    method: 'POST',
    path: '/api/v1/payments/:paymentId/void',
    scope: 'payments:write',
    service: 'command-api',
    summary: 'Void a payment',
    description: 'Releases the authorization. A body is ignored.',
  },
  refundPayment: {
    method: 'POST',
    path: '/api/v1/payments/:paymentId/refund',
    scope: 'payments:write',
    service: 'command-api',
    summary: 'Refund a payment',
    description:
      'Gives back what is left, or `refundAmount` of it. `amount` is an alias. Without an amount no field but `reason` may stand in the body.',
  },
  createWebhookEndpoint: {
    method: 'POST',
    path: '/api/v1/webhook-endpoints',
    scope: 'webhooks:write',
    service: 'command-api',
    summary: 'Register a webhook endpoint',
    description:
      'What happens to the own payments from now on is sent to the address, signed as Standard Webhooks. `secret` is shown here and after a rotation alone.',
  },
  listWebhookEndpoints: {
    method: 'GET',
    path: '/api/v1/webhook-endpoints',
    scope: 'payments:read',
    service: 'command-api',
    summary: 'List webhook endpoints',
    description: 'The own ones with their state, the oldest first; at most 10.',
  },
  getWebhookEndpoint: {
    method: 'GET',
    path: '/api/v1/webhook-endpoints/:endpointId',
    scope: 'payments:read',
    service: 'command-api',
    summary: 'Get a webhook endpoint',
    description:
      '`status` is FAILING after five failures in a row: then it gets one request at a time. Without a success for 72 hours it is DISABLED.',
  },
  changeWebhookEndpoint: {
    method: 'PATCH',
    path: '/api/v1/webhook-endpoints/:endpointId',
    scope: 'webhooks:write',
    service: 'command-api',
    summary: 'Change, disable or enable a webhook endpoint',
    description:
      'An enabled endpoint goes on where it stopped, or with `resumeFrom: "now"` after what happened until now.',
  },
  deleteWebhookEndpoint: {
    method: 'DELETE',
    path: '/api/v1/webhook-endpoints/:endpointId',
    scope: 'webhooks:write',
    service: 'command-api',
    summary: 'Delete a webhook endpoint',
    description: 'What it has not accepted yet is not sent any more.',
  },
  rotateWebhookSecret: {
    method: 'POST',
    path: '/api/v1/webhook-endpoints/:endpointId/rotate-secret',
    scope: 'webhooks:write',
    service: 'command-api',
    summary: 'Rotate the secret of a webhook endpoint',
    description:
      'The new secret is shown once. Until the old one expires, each message has a signature by both.',
  },
  testWebhookEndpoint: {
    method: 'POST',
    path: '/api/v1/webhook-endpoints/:endpointId/test',
    scope: 'webhooks:write',
    service: 'command-api',
    summary: 'Send a test message',
    description:
      'One message of type `webhook.test`, once, also to a disabled endpoint. Its attempt has the `eventId` of the response. An endpoint is sent four tests a minute, one more is 429.',
  },
  resendWebhookEvents: {
    method: 'POST',
    path: '/api/v1/webhook-endpoints/:endpointId/resend',
    scope: 'webhooks:write',
    service: 'command-api',
    summary: 'Send events again',
    description:
      'All since a moment, or one by its `eventId` while it is among the attempts. Each message has the id that it had.',
  },
  listWebhookAttempts: {
    method: 'GET',
    path: '/api/v1/webhook-endpoints/:endpointId/attempts',
    scope: 'payments:read',
    service: 'command-api',
    summary: 'List the attempts at a webhook endpoint',
    description: 'The latest first; the last 1,000 are kept.',
  },
  listAllWebhookEndpoints: {
    method: 'GET',
    path: '/ops/v1/webhook-endpoints',
    scope: 'ops:admin',
    service: 'command-api',
    summary: 'Webhook endpoints of all merchants',
    description: 'With their state; of one merchant where `merchant` is given.',
  },
  listAllWebhookAttempts: {
    method: 'GET',
    path: '/ops/v1/webhook-endpoints/:endpointId/attempts',
    scope: 'ops:admin',
    service: 'command-api',
    summary: 'The attempts at an endpoint of any merchant',
    description: 'The latest first; the last 1,000 are kept.',
  },
  streamWebhookEvents: {
    method: 'GET',
    path: '/api/v1/webhook-events/stream',
    scope: 'payments:read',
    service: 'query-api',
    summary: 'The messages of the own payments, live',
    description:
      'Server-sent events: the very bodies that a webhook endpoint is sent, in order; the id of each is its position. The first, `ready`, has the secret that `payments listen --forward-to` signs with, where the token has the scope `webhooks:write`.',
  },
  stripeWebhook: {
    method: 'POST',
    path: '/webhooks/stripe',
    scope: SIGNED,
    service: 'command-api',
    summary: 'A notice of Stripe',
    description:
      'Sent by Stripe and by nobody else: `Stripe-Signature` over the raw body stands in the place of a token. With `PROVIDER=stripe` and a webhook secret; without one no notice is signed. Nothing of a notice is believed but which payment it is about: Stripe is asked about it now.',
  },
  searchPayments: {
    method: 'GET',
    path: '/audit/v1/payments',
    scope: 'audit:read',
    service: 'audit',
    summary: 'Find payments',
    description: 'Newest first, over all merchants that the token may see.',
  },
  paymentEvents: {
    method: 'GET',
    path: '/audit/v1/payments/:paymentId/events',
    scope: 'audit:read',
    service: 'audit',
    summary: 'What happened to a payment',
    description:
      'Its events, oldest first. `Accept: application/x-ndjson` gives the export, one stored event per line.',
  },
  paymentState: {
    method: 'GET',
    path: '/audit/v1/payments/:paymentId/state',
    scope: 'audit:read',
    service: 'audit',
    summary: 'A payment as it was then',
    description:
      'At a revision or a time, with the event that led there and what is different now.',
  },
  verifyPayment: {
    method: 'GET',
    path: '/audit/v1/payments/:paymentId/verify',
    scope: 'audit:read',
    service: 'audit',
    summary: "Verify a payment's chain",
    description:
      'From its first event: the hash of each, its link to the one before, and its sums. The first that does not fit is in `broken`.',
  },
  explainCommand: {
    method: 'GET',
    path: '/audit/v1/payments/:paymentId/explain',
    scope: 'audit:read',
    service: 'audit',
    summary: 'Would this be allowed now, and if not, why',
    description:
      'Capture, void or refund of an amount. Nothing is done; the events that forbid it are named.',
  },
  readLog: {
    method: 'GET',
    path: '/audit/v1/events',
    scope: 'audit:read',
    service: 'audit',
    summary: 'The log from a position',
    description: 'In pages; `Accept: application/x-ndjson` gives the export.',
  },
  streamLog: {
    method: 'GET',
    path: '/audit/v1/events/stream',
    scope: 'audit:read',
    service: 'audit',
    summary: 'The log, live',
    description: 'Server-sent events; the id of each is its position.',
  },
  verifyLog: {
    method: 'GET',
    path: '/audit/v1/verify',
    scope: 'audit:read',
    service: 'audit',
    summary: 'Verify the whole log',
    description: '`Accept: text/event-stream` gives progress, then the result.',
  },
  reconcile: {
    method: 'POST',
    path: '/audit/v1/reconcile',
    scope: 'audit:read',
    service: 'command-api',
    summary: "Compare the provider's ledger with the log",
    description:
      'It takes as long as both are long: `Accept: text/event-stream` gives `result`, or `failed` with the error body, and keep-alives until then. For a token of all merchants.',
  },
  reconcilePayment: {
    method: 'GET',
    path: '/audit/v1/payments/:paymentId/reconcile',
    scope: 'audit:read',
    service: 'command-api',
    summary: 'What the provider says of each operation of a payment',
    description:
      'Beside the outcome of the log, the oldest first. The provider is asked about the last operations alone, `limit` of them, and nothing is changed there or here. A provider that does not respond is `NOT_KNOWN`, never taken for one without an entry.',
  },
  acknowledgeReconciliation: {
    method: 'POST',
    path: '/ops/v1/reconcile/acknowledge',
    scope: 'ops:admin',
    service: 'command-api',
    summary: 'Let merchants move money again after a restore',
    description:
      "While the provider's ledger holds operations that the log does not, merchants can only read. For a token of all merchants; who acknowledged it is recorded.",
  },
  listUnresolved: {
    method: 'GET',
    path: '/ops/v1/unresolved',
    scope: 'ops:admin',
    service: 'command-api',
    summary: 'Operations whose outcome nobody knows yet',
    description:
      'Oldest first, with how often the provider was asked and when it is asked again. Recovery ends most of them by itself.',
  },
  resolvePayment: {
    method: 'POST',
    path: '/ops/v1/payments/:paymentId/resolve',
    scope: 'ops:resolve',
    service: 'command-api',
    summary: 'Resolve an operation by hand',
    description:
      'Where the provider does not answer. It is asked first: a definite outcome of its own is recorded instead. The first operator requests (202); the outcome is recorded when another operator requests the same within 24 hours (200). For tokens of all merchants.',
  },
  serviceSettings: {
    method: 'GET',
    path: '/ops/v1/settings',
    scope: 'ops:admin',
    service: 'command-api',
  },
  listParked: {
    method: 'GET',
    path: '/ops/v1/parked',
    scope: 'ops:admin',
    service: 'projector',
    summary: 'Payments whose document stopped at an event',
    description:
      'With the revision and the reason. Other payments go on, and a GET of such a payment reads its events.',
  },
  retryParked: {
    method: 'POST',
    path: '/ops/v1/parked/:paymentId/retry',
    scope: 'ops:admin',
    service: 'projector',
    summary: 'Read a parked payment again',
    description:
      'After what parked it was put right, for instance by a newer version that knows the event.',
  },
  listProjections: {
    method: 'GET',
    path: '/ops/v1/projections',
    scope: 'ops:admin',
    service: 'projector',
    summary: 'How far the read models are',
    description: "Against the event store's own head. For a token of all merchants.",
  },
  rebuildProjections: {
    method: 'POST',
    path: '/ops/v1/projections/rebuild',
    scope: 'ops:admin',
    service: 'projector',
    summary: 'Fill the read models anew',
    description:
      'Beside those that are served, which go on being read. `Accept: text/event-stream` gives `progress`, then `result` or `failed`. For a token of all merchants.',
  },
  compareReadModels: {
    method: 'POST',
    path: '/ops/v1/projections/compare',
    scope: 'ops:admin',
    service: 'projector',
    summary: 'Compare all read models with the log',
    description:
      'Each document with the fold of its stream, and each payment of the log with the documents; nothing is changed. `Accept: text/event-stream` gives `progress`, then `result` or `failed`. For a token of all merchants.',
  },
  logStatus: {
    method: 'GET',
    path: '/ops/v1/log',
    scope: 'ops:admin',
    service: 'projector',
    summary: 'When the log was last verified, and up to where it is sealed',
    description: 'Nothing is read for it but what the process knows. For a token of all merchants.',
  },
  acknowledgeBreak: {
    method: 'POST',
    path: '/ops/v1/log/acknowledge',
    scope: 'ops:admin',
    service: 'projector',
    summary: 'Acknowledge one break of the log',
    description:
      'As `GET /audit/v1/verify` named it in `breaks`. It is recorded with the actor and the note; from then on a verification lists it apart, and is not broken by it alone. Another break at the same place, or another text there, is none that was acknowledged. For a token of all merchants.',
  },
  listTopics: {
    method: 'GET',
    path: '/ops/v1/topics',
    scope: 'ops:admin',
    service: 'projector',
  },
  readTopic: {
    method: 'GET',
    path: '/ops/v1/topics/:topic/messages',
    scope: 'ops:admin',
    service: 'projector',
  },
  listRelayParked: {
    method: 'GET',
    path: '/ops/v1/topics/parked',
    scope: 'ops:admin',
    service: 'projector',
    summary: 'Payments whose messages to the topics wait',
    description:
      'The relay has parked them at an event that it cannot read, or at a message that the broker does not take for its size. Their messages wait, in order; other payments go on. For a token of all merchants.',
  },
  retryRelayParked: {
    method: 'POST',
    path: '/ops/v1/topics/parked/:paymentId/retry',
    scope: 'ops:admin',
    service: 'projector',
    summary: 'Send what waits of a payment that the relay has parked',
    description:
      'In the order of its events; where one still cannot be sent, the payment stays parked with the new reason. For a token of all merchants.',
  },
  retryAllRelayParked: {
    method: 'POST',
    path: '/ops/v1/topics/parked/retry',
    scope: 'ops:admin',
    service: 'projector',
    summary: 'Send what waits of all payments that the relay has parked',
    description:
      'At most 100 a request, those that were not tried for the longest time first; `left` says how many it has not tried. For a token of all merchants.',
  },
} as const satisfies Record<string, RoutePlace>;

export type RouteId = keyof typeof ROUTES;

export type RouteIdOf<S extends Service> = {
  [Id in RouteId]: (typeof ROUTES)[Id]['service'] extends S ? Id : never;
}[RouteId];
