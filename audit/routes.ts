/** The audit routes (scope `audit:read`), described in docs/audit.md. */
import type { FastifyInstance } from 'fastify';
import type { AuthHooks } from '../shared/http/auth/hooks.ts';
import { joinRoutes, type RoutesOf, registerRoutes } from '../shared/http/route.ts';
import { createStreams } from '../shared/http/server/streams.ts';
import { createRecorder } from './access-recorder.ts';
import type { AuditDeps } from './deps.ts';
import { AUDIT_LOG_ROUTES } from './log-routes.ts';
import { createMerchantLookup } from './merchants.ts';
import { AUDIT_PAYMENT_ROUTES } from './payment-routes.ts';

type AuditApi = Omit<AuditDeps, 'merchants' | 'streams' | 'record'> &
  Partial<Pick<AuditDeps, 'record'>>;

export const AUDIT_ROUTES: RoutesOf<'audit', AuditDeps> = joinRoutes(
  AUDIT_PAYMENT_ROUTES,
  AUDIT_LOG_ROUTES,
);

type Reading = Pick<AuditDeps, 'store' | 'readModels'> & Partial<Pick<AuditDeps, 'record'>>;

/** What reads need that are recorded; the places of its streams are its own. */
export const openReading = (
  app: FastifyInstance,
  { store, readModels, record = createRecorder(store) }: Reading,
) => ({
  store,
  readModels,
  record,
  merchants: createMerchantLookup(store, readModels),
  streams: createStreams(app),
});

export const registerAuditApi = (
  app: FastifyInstance,
  authHooks: AuthHooks,
  api: AuditApi,
): void => {
  registerRoutes(app, authHooks, AUDIT_ROUTES, { ...api, ...openReading(app, api) });
};
