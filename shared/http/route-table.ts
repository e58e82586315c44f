/** Every route with a token or a signature; API documents, `405` and the gateway's check use it. */
import type { Scope } from './auth/principal.ts';

export type Service = 'command-api' | 'query-api' | 'audit' | 'projector';
type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

/** In place of a scope: the sender has no token and signs the body. */
export const SIGNED = 'signed';

type Row = readonly [at: `${Method} /${string}`, scope: Scope | typeof SIGNED, service: Service];

const TABLE = {
  createPayment: ['POST /api/v1/payments', 'payments:write', 'command-api'],
  listPayments: ['GET /api/v1/payments', 'payments:read', 'query-api'],
  getPayment: ['GET /api/v1/payments/:paymentId', 'payments:read', 'query-api'],
  capturePayment: ['POST /api/v1/payments/:paymentId/capture', 'payments:write', 'command-api'],
  voidPayment: ['POST /api/v1/payments/:paymentId/void', 'payments:write', 'command-api'],
  refundPayment: ['POST /api/v1/payments/:paymentId/refund', 'payments:write', 'command-api'],
  createWebhookEndpoint: ['POST /api/v1/webhook-endpoints', 'webhooks:write', 'command-api'],
  listWebhookEndpoints: ['GET /api/v1/webhook-endpoints', 'payments:read', 'command-api'],
  getWebhookEndpoint: ['GET /api/v1/webhook-endpoints/:endpointId', 'payments:read', 'command-api'],
  changeWebhookEndpoint: [
    'PATCH /api/v1/webhook-endpoints/:endpointId',
    'webhooks:write',
    'command-api',
  ],
  deleteWebhookEndpoint: [
    'DELETE /api/v1/webhook-endpoints/:endpointId',
    'webhooks:write',
    'command-api',
  ],
  rotateWebhookSecret: [
    'POST /api/v1/webhook-endpoints/:endpointId/rotate-secret',
    'webhooks:write',
    'command-api',
  ],
  testWebhookEndpoint: [
    'POST /api/v1/webhook-endpoints/:endpointId/test',
    'webhooks:write',
    'command-api',
  ],
  resendWebhookEvents: [
    'POST /api/v1/webhook-endpoints/:endpointId/resend',
    'webhooks:write',
    'command-api',
  ],
  listWebhookAttempts: [
    'GET /api/v1/webhook-endpoints/:endpointId/attempts',
    'payments:read',
    'command-api',
  ],
  listAllWebhookEndpoints: ['GET /ops/v1/webhook-endpoints', 'ops:admin', 'command-api'],
  listAllWebhookAttempts: [
    'GET /ops/v1/webhook-endpoints/:endpointId/attempts',
    'ops:admin',
    'command-api',
  ],
  streamWebhookEvents: ['GET /api/v1/webhook-events/stream', 'payments:read', 'query-api'],
  stripeWebhook: ['POST /webhooks/stripe', SIGNED, 'command-api'],
  searchPayments: ['GET /audit/v1/payments', 'audit:read', 'audit'],
  paymentEvents: ['GET /audit/v1/payments/:paymentId/events', 'audit:read', 'audit'],
  paymentState: ['GET /audit/v1/payments/:paymentId/state', 'audit:read', 'audit'],
  verifyPayment: ['GET /audit/v1/payments/:paymentId/verify', 'audit:read', 'audit'],
  explainCommand: ['GET /audit/v1/payments/:paymentId/explain', 'audit:read', 'audit'],
  readLog: ['GET /audit/v1/events', 'audit:read', 'audit'],
  streamLog: ['GET /audit/v1/events/stream', 'audit:read', 'audit'],
  exportEvents: ['GET /audit/v1/export', 'audit:read', 'projector'],
  verifyLog: ['GET /audit/v1/verify', 'audit:read', 'audit'],
  reconcile: ['POST /audit/v1/reconcile', 'audit:read', 'command-api'],
  reconcilePayment: ['GET /audit/v1/payments/:paymentId/reconcile', 'audit:read', 'command-api'],
  acknowledgeReconciliation: ['POST /ops/v1/reconcile/acknowledge', 'ops:admin', 'command-api'],
  listUnresolved: ['GET /ops/v1/unresolved', 'ops:admin', 'command-api'],
  resolvePayment: ['POST /ops/v1/payments/:paymentId/resolve', 'ops:resolve', 'command-api'],
  serviceSettings: ['GET /ops/v1/settings', 'ops:admin', 'command-api'],
  listAttention: ['GET /ops/v1/attention', 'ops:admin', 'command-api'],
  acknowledgeAttention: ['POST /ops/v1/attention/:itemId/acknowledge', 'ops:admin', 'command-api'],
  listParked: ['GET /ops/v1/parked', 'ops:admin', 'projector'],
  retryParked: ['POST /ops/v1/parked/:paymentId/retry', 'ops:admin', 'projector'],
  listProjections: ['GET /ops/v1/projections', 'ops:admin', 'projector'],
  rebuildProjections: ['POST /ops/v1/projections/rebuild', 'ops:admin', 'projector'],
  compareReadModels: ['POST /ops/v1/projections/compare', 'ops:admin', 'projector'],
  logStatus: ['GET /ops/v1/log', 'ops:admin', 'projector'],
  acknowledgeBreak: ['POST /ops/v1/log/acknowledge', 'ops:admin', 'projector'],
  listTopics: ['GET /ops/v1/topics', 'ops:admin', 'projector'],
  readTopic: ['GET /ops/v1/topics/:topic/messages', 'ops:admin', 'projector'],
  listRelayParked: ['GET /ops/v1/topics/parked', 'ops:admin', 'projector'],
  retryRelayParked: ['POST /ops/v1/topics/parked/:paymentId/retry', 'ops:admin', 'projector'],
  retryAllRelayParked: ['POST /ops/v1/topics/parked/retry', 'ops:admin', 'projector'],
} as const satisfies Record<string, Row>;

export type RouteId = keyof typeof TABLE;

export type RouteIdOf<S extends Service> = {
  [Id in RouteId]: (typeof TABLE)[Id][2] extends S ? Id : never;
}[RouteId];

export type RoutePlace = { method: Method; path: string; scope: Row[1]; service: Service };

/** By id, in the order of the table. */
export const ROUTES = Object.fromEntries(
  Object.entries(TABLE).map(([id, [at, scope, service]]) => {
    const [method, path] = at.split(' ');
    return [id, { method, path, scope, service }];
  }),
) as Record<RouteId, RoutePlace>;
