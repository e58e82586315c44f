/**
 * `POST /audit/v1/reconcile`: the provider's ledger against the log. It stands on the command side,
 * which alone knows the provider, and is a POST because it sets that provider to work.
 */
import type { FastifyInstance, FastifyReply, onRequestHookHandler } from 'fastify';
import { StoreUnavailable } from '../../shared/event-store/errors.ts';
import type { EventStore } from '../../shared/event-store/port.ts';
import { createRecorder } from '../../shared/http/access-recorder.ts';
import { speaksForAll } from '../../shared/http/auth/authorize.ts';
import { JSON_TYPE, RETRY_AFTER_SECONDS, reject } from '../../shared/http/errors.ts';
import type { Provider } from '../provider/port.ts';
import { type Reconciliation, reconcile } from './reconcile.ts';

export type ReconcileApi = {
  /** Token, scope `audit:read` and rate limit (shared/http/auth/authorize.ts). */
  authorize: onRequestHookHandler;
  store: EventStore;
  provider: Pick<Provider, 'ledger'>;
};

const RETRY_LATER = { 'retry-after': String(RETRY_AFTER_SECONDS) };

const rejectFailed = (reply: FastifyReply, error: unknown): FastifyReply => {
  if (error instanceof StoreUnavailable) throw error;
  const details = ["the provider's ledger cannot be read now; nothing was changed"];
  return reject(reply, 'PROVIDER_UNAVAILABLE', details, RETRY_LATER);
};

/** Registers the route; one reconciliation at a time. */
export const registerReconcileApi = (app: FastifyInstance, options: ReconcileApi): void => {
  const { authorize, store, provider } = options;
  const record = createRecorder(store);
  let running: Promise<Reconciliation> | undefined;
  app.post('/audit/v1/reconcile', { onRequest: authorize }, async (request, reply) => {
    // What the provider knows and the log does not belongs to no merchant yet.
    if (!speaksForAll(request, reply)) return reply;
    await record(request, { action: 'RECONCILE' });
    try {
      // Whoever asks meanwhile gets the same answer.
      running ??= reconcile({ store, provider }).finally(() => {
        running = undefined;
      });
      return reply.type(JSON_TYPE).send(JSON.stringify(await running));
    } catch (error) {
      return rejectFailed(reply, error);
    }
  });
};
