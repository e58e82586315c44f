/**
 * `POST /audit/v1/reconcile`: the provider's ledger against the log. It stands on the command side,
 * which alone knows the provider, and is a POST because it sets that provider to work.
 */
import type { FastifyReply } from 'fastify';
import type { Recorder } from '../../shared/http/access-recorder.ts';
import { RETRY_LATER, reject } from '../../shared/http/errors.ts';
import {
  okJson,
  type RequestForm,
  type Route,
  type RoutesOf,
  sendJson,
} from '../../shared/http/route.ts';
import * as contract from './contract.ts';
import { LedgerUnavailable, type Reconciliation } from './reconcile.ts';

export type ReconcileDeps = {
  record: Recorder;
  /** One reconciliation runs at a time: a request that comes meanwhile gets the same outcome. */
  reconcileOnce(): Promise<Reconciliation>;
};

const rejectFailed = (reply: FastifyReply, error: unknown): FastifyReply => {
  if (!(error instanceof LedgerUnavailable)) throw error;
  const details = ["the provider's ledger cannot be read now; nothing was changed"];
  return reject(reply, 'PROVIDER_UNAVAILABLE', details, RETRY_LATER);
};

const route = <const F extends RequestForm>(own: Route<ReconcileDeps, F>) => own;

export const RECONCILE_ROUTES = {
  reconcile: route({
    // What the provider knows and the log does not belongs to no merchant yet.
    request: { allMerchants: true },
    responses: okJson(contract.Reconciliation),
    handle: async ({ record, reconcileOnce }, _input, reply) => {
      await record(reply.request, { action: 'RECONCILE' });
      try {
        return sendJson(reply, await reconcileOnce());
      } catch (error) {
        return rejectFailed(reply, error);
      }
    },
  }),
} satisfies Partial<RoutesOf<'command-api', ReconcileDeps>>;
