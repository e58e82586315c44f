/** Every route with a token or a signature; API documents, `405` and the gateway's check use it. */
import type { Scope } from './request.ts';

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** In place of a scope: the sender has no token and signs the body. */
export const SIGNED = 'signed';

type Row = readonly [at: `${Method} /${string}`, scope: Scope | typeof SIGNED];

const TABLE = {
  'command-api': {
    createPayment: ['POST /api/v1/payments', 'payments:write'],
    capturePayment: ['POST /api/v1/payments/:paymentId/capture', 'payments:write'],
    voidPayment: ['POST /api/v1/payments/:paymentId/void', 'payments:write'],
    refundPayment: ['POST /api/v1/payments/:paymentId/refund', 'payments:write'],
    createWebhookEndpoint: ['POST /api/v1/webhook-endpoints', 'webhooks:write'],
    listWebhookEndpoints: ['GET /api/v1/webhook-endpoints', 'payments:read'],
    getWebhookEndpoint: ['GET /api/v1/webhook-endpoints/:endpointId', 'payments:read'],
    changeWebhookEndpoint: ['PATCH /api/v1/webhook-endpoints/:endpointId', 'webhooks:write'],
    deleteWebhookEndpoint: ['DELETE /api/v1/webhook-endpoints/:endpointId', 'webhooks:write'],
    rotateWebhookSecret: [
      'POST /api/v1/webhook-endpoints/:endpointId/rotate-secret',
      'webhooks:write',
    ],
    testWebhookEndpoint: ['POST /api/v1/webhook-endpoints/:endpointId/test', 'webhooks:write'],
    resendWebhookEvents: ['POST /api/v1/webhook-endpoints/:endpointId/resend', 'webhooks:write'],
    listWebhookAttempts: ['GET /api/v1/webhook-endpoints/:endpointId/attempts', 'payments:read'],
    listAllWebhookEndpoints: ['GET /ops/v1/webhook-endpoints', 'ops:admin'],
    listAllWebhookAttempts: ['GET /ops/v1/webhook-endpoints/:endpointId/attempts', 'ops:admin'],
    stripeWebhook: ['POST /webhooks/stripe', SIGNED],
    reconcile: ['POST /audit/v1/reconcile', 'audit:read'],
    reconcilePayment: ['GET /audit/v1/payments/:paymentId/reconcile', 'audit:read'],
    acknowledgeReconciliation: ['POST /ops/v1/reconcile/acknowledge', 'ops:admin'],
    listUnresolved: ['GET /ops/v1/unresolved', 'ops:admin'],
    resolvePayment: ['POST /ops/v1/payments/:paymentId/resolve', 'ops:resolve'],
    serviceSettings: ['GET /ops/v1/settings', 'ops:admin'],
    listAttention: ['GET /ops/v1/attention', 'ops:admin'],
    erasePayment: ['POST /ops/v1/payments/:paymentId/erase', 'ops:erase'],
    holdErasure: ['PUT /ops/v1/payments/:paymentId/erase/hold', 'ops:erase'],
    releaseErasure: ['DELETE /ops/v1/payments/:paymentId/erase/hold', 'ops:erase'],
    searchPeople: ['POST /ops/v1/people/search', 'ops:erase'],
    acknowledgeAttention: ['POST /ops/v1/attention/:itemId/acknowledge', 'ops:admin'],
  },
  'query-api': {
    listPayments: ['GET /api/v1/payments', 'payments:read'],
    getPayment: ['GET /api/v1/payments/:paymentId', 'payments:read'],
    streamWebhookEvents: ['GET /api/v1/webhook-events/stream', 'payments:read'],
  },
  audit: {
    searchPayments: ['GET /audit/v1/payments', 'audit:read'],
    paymentEvents: ['GET /audit/v1/payments/:paymentId/events', 'audit:read'],
    paymentState: ['GET /audit/v1/payments/:paymentId/state', 'audit:read'],
    verifyPayment: ['GET /audit/v1/payments/:paymentId/verify', 'audit:read'],
    explainCommand: ['GET /audit/v1/payments/:paymentId/explain', 'audit:read'],
    readLog: ['GET /audit/v1/events', 'audit:read'],
    streamLog: ['GET /audit/v1/events/stream', 'audit:read'],
    verifyLog: ['GET /audit/v1/verify', 'audit:read'],
  },
  projector: {
    exportEvents: ['GET /audit/v1/export', 'audit:read'],
    listParked: ['GET /ops/v1/parked', 'ops:admin'],
    retryParked: ['POST /ops/v1/parked/:paymentId/retry', 'ops:admin'],
    listProjections: ['GET /ops/v1/projections', 'ops:admin'],
    rebuildProjections: ['POST /ops/v1/projections/rebuild', 'ops:admin'],
    compareReadModels: ['POST /ops/v1/projections/compare', 'ops:admin'],
    logStatus: ['GET /ops/v1/log', 'ops:admin'],
    acknowledgeBreak: ['POST /ops/v1/log/acknowledge', 'ops:admin'],
    listTopics: ['GET /ops/v1/topics', 'ops:admin'],
    readTopic: ['GET /ops/v1/topics/:topic/messages', 'ops:admin'],
    listRelayParked: ['GET /ops/v1/topics/parked', 'ops:admin'],
    retryRelayParked: ['POST /ops/v1/topics/parked/:paymentId/retry', 'ops:admin'],
    retryAllRelayParked: ['POST /ops/v1/topics/parked/retry', 'ops:admin'],
  },
} as const satisfies Record<string, Record<string, Row>>;

export type Service = keyof typeof TABLE;
export type RouteIdOf<S extends Service> = { [One in S]: keyof (typeof TABLE)[One] }[S];
export type RouteId = RouteIdOf<Service>;

export type RoutePlace = { method: Method; path: string; scope: Row[1]; service: Service };

const placesOf = ([service, rows]: [string, Record<string, Row>]) =>
  Object.entries(rows).map(([id, [at, scope]]) => {
    const [method, path] = at.split(' ');
    return [id, { method, path, scope, service }];
  });

/** By id, in the order of the table. */
export const ROUTES: Record<RouteId, RoutePlace> = Object.fromEntries(
  Object.entries(TABLE).flatMap(placesOf),
);
