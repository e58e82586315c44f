/** The audit routes (scope `audit:read`): history that proves itself. See docs/audit.md. */
import type { FastifyInstance, onRequestHookHandler } from 'fastify';
import type { EventStore } from '../shared/event-store/port.ts';
import { createRecorder } from '../shared/http/access-recorder.ts';
import { createStreams, type StreamLimits } from '../shared/http/server/streams.ts';
import type { AuditDeps } from './deps.ts';
import { registerLogRoutes } from './log-routes.ts';
import { createMerchantLookup } from './merchants.ts';
import { registerPaymentRoutes } from './payment-routes.ts';

export type AuditApi = {
  /** Token, scope `audit:read` and rate limit (shared/http/auth/authorize.ts). */
  authorize: onRequestHookHandler;
  store: EventStore;
  readModels: AuditDeps['readModels'];
  /** Hears of every verification of the whole log that came to its end. */
  onVerified?: (ok: boolean) => void;
  /** Tests shorten them. */
  limits?: StreamLimits;
};

/** Registers `/audit/v1/…` on an app that has been built (shared/http/server/app.ts). */
export const registerAuditApi = (app: FastifyInstance, options: AuditApi): void => {
  const { authorize, store, readModels, limits, onVerified = () => undefined } = options;
  const deps: AuditDeps = {
    store,
    readModels,
    record: createRecorder(store),
    merchants: createMerchantLookup(store, readModels),
    streams: createStreams(app, limits),
    onVerified,
  };
  registerPaymentRoutes(app, authorize, deps);
  registerLogRoutes(app, authorize, deps);
};
