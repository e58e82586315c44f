/** The audit routes (scope `audit:read`), described in docs/audit.md. */
import type { FastifyInstance } from 'fastify';
import type { EventStore } from '../shared/event-store/port.ts';
import { createRecorder, type Recorder } from '../shared/http/access-recorder.ts';
import type { AuthHooks } from '../shared/http/auth/hooks.ts';
import { joinRoutes, type RoutesOf, registerRoutes } from '../shared/http/route.ts';
import { createStreams, type StreamLimits } from '../shared/http/server/streams.ts';
import type { AuditDeps } from './deps.ts';
import { AUDIT_LOG_ROUTES } from './log-routes.ts';
import { createMerchantLookup } from './merchants.ts';
import { AUDIT_PAYMENT_ROUTES } from './payment-routes.ts';

export type AuditApi = {
  store: EventStore;
  readModels: AuditDeps['readModels'];
  /** `MAX_OPERATIONS_PER_PAYMENT`, for `explain` (gaps §18). */
  operationsMax: number;
  /** The names of the provider that is set, for `explain`; left out where this process does not know it. */
  providers?: readonly string[];
  /** Called with what every verification of the whole log found, the break or undefined; not where it was aborted. */
  onVerified?: AuditDeps['onVerified'];
  /** Left out: every reading is recorded in the log. */
  record?: Recorder;
  /** The public key whose seals are trusted, in base64url; left out where this process has none. */
  sealingKey?: string | undefined;
  /** The heads that are kept outside the log, as they are now. */
  keptHeads?: AuditDeps['keptHeads'];
  /** Tests set shorter times. */
  limits?: StreamLimits;
};

/** Every route of the audit. */
export const AUDIT_ROUTES: RoutesOf<'audit', AuditDeps> = joinRoutes(
  AUDIT_PAYMENT_ROUTES,
  AUDIT_LOG_ROUTES,
);

/** Registers `/audit/v1/…` on an app that has been built (shared/http/server/app.ts). */
export const registerAuditApi = (
  app: FastifyInstance,
  authHooks: AuthHooks,
  {
    store,
    readModels,
    operationsMax,
    providers = [],
    record,
    limits,
    onVerified = () => undefined,
    sealingKey,
    keptHeads = () => undefined,
  }: AuditApi,
): void => {
  registerRoutes(app, authHooks, AUDIT_ROUTES, {
    store,
    readModels,
    record: record ?? createRecorder(store),
    merchants: createMerchantLookup(store, readModels),
    streams: createStreams(app, limits),
    operationsMax,
    providers,
    onVerified,
    sealingKey,
    keptHeads,
    verifying: { now: false },
  });
};
