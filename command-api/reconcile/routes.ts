/**
 * `POST /audit/v1/reconcile`: the provider's ledger against the log. It stands on the command side,
 * which alone knows the provider, and is a POST because it sets that provider to work.
 * `GET /audit/v1/payments/{id}/reconcile` asks the provider about the operations of one payment.
 */
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import { UnreadableStream } from '../../shared/event-store/errors.ts';
import { isUnreadableOf } from '../../shared/event-store/fold-stream.ts';
import type { EventStore } from '../../shared/event-store/port.ts';
import type { Recorder } from '../../shared/http/access-recorder.ts';
import type { Principal } from '../../shared/http/auth/principal.ts';
import { errorBody, RETRY_LATER, reject } from '../../shared/http/errors.ts';
import { asJson, okJson, type RoutesOf, routeWith, sendJson } from '../../shared/http/route.ts';
import {
  accepts,
  EVENT_STREAM,
  KEEP_ALIVE,
  type Streams,
  serverSent,
} from '../../shared/http/server/streams.ts';
import { streamOf } from '../../shared/payment/payment-events.ts';
import type { ReadModelsReader } from '../../shared/read-models/port.ts';
import type { CommandDeps } from '../deps.ts';
import { notInLog } from '../loaded-payment.ts';
import * as contract from './contract.ts';
import { LedgerUnavailable, type Reconciliation } from './reconcile.ts';
import { reconcilePayment } from './reconcile-payment.ts';

export type ReconcileDeps = {
  record: Recorder;
  /** One reconciliation runs at a time: a request that comes meanwhile gets the same outcome. */
  reconcileOnce(): Promise<Reconciliation>;
  streams: Streams;
};

const NO_LEDGER = ["the provider's ledger cannot be read now; nothing was changed"];

const rejectFailed = (reply: FastifyReply, error: unknown): FastifyReply => {
  if (!(error instanceof LedgerUnavailable)) throw error;
  return reject(reply, 'PROVIDER_UNAVAILABLE', NO_LEDGER, RETRY_LATER);
};

/** `result`, or `failed` with the error body that the response would have had as JSON. */
async function* resultTexts({
  reconcileOnce,
}: Pick<ReconcileDeps, 'reconcileOnce'>): AsyncGenerator<string> {
  try {
    yield serverSent('result', await reconcileOnce());
  } catch (error) {
    if (!(error instanceof LedgerUnavailable)) throw error;
    const body = errorBody('PROVIDER_UNAVAILABLE', NO_LEDGER, new Date().toISOString());
    yield serverSent('failed', JSON.parse(body));
  }
}

const route = routeWith<ReconcileDeps>();

export const RECONCILE_ROUTES = {
  reconcile: route({
    // What the provider knows and the log does not belongs to no merchant yet.
    request: { allMerchants: true },
    responses: {
      200: {
        description: 'The response.',
        content: { ...asJson(contract.Reconciliation), [EVENT_STREAM]: z.string() },
      },
    },
    handle: async (deps, _input, reply) => {
      const isStream = accepts(reply, EVENT_STREAM);
      if (isStream && !deps.streams.take(reply)) {
        const details = ['too many streams are open; try again later'];
        return reject(reply, 'SERVICE_UNAVAILABLE', details, RETRY_LATER);
      }
      await deps.record(reply.request, { action: 'RECONCILE' });
      if (isStream)
        return deps.streams.send(reply, EVENT_STREAM, () => resultTexts(deps), KEEP_ALIVE);
      try {
        return sendJson(reply, await deps.reconcileOnce());
      } catch (error) {
        return rejectFailed(reply, error);
      }
    },
  }),
} satisfies Partial<RoutesOf<'command-api', ReconcileDeps>>;

export type ReconcilePaymentDeps = {
  record: Recorder;
  commands: Pick<CommandDeps, 'provider' | 'paymentLog'>;
  store: Pick<EventStore, 'lastRevision'>;
  readModels: Pick<ReadModelsReader, 'getAny'>;
};

/** Nothing of it was compared, for `unreadable` says why its events cannot be read. */
const notCompared = (unreadable: string) => ({
  ok: false,
  operations: [],
  notCompared: 0,
  unreadable,
});

/** A payment whose events cannot be read, with the merchant that the read models name, else its first event. */
const unreadableFor = async (
  { readModels }: ReconcilePaymentDeps,
  { merchantId: only }: Principal,
  paymentId: string,
  error: UnreadableStream,
) => {
  const document = await readModels.getAny(paymentId);
  const isOwn = document?.merchantId === only || isUnreadableOf(error, only);
  if (only !== '*' && !isOwn) return undefined;
  const merchantId = document?.merchantId ?? (isOwn ? only : '');
  return { merchantId, ...notCompared(error.message) };
};

/** Throws StreamNotWhole where the stream was deleted, or the log has nothing of what the read models know. */
const rejectRemoved = async (
  { store, readModels }: ReconcilePaymentDeps,
  paymentId: string,
): Promise<void> => {
  await store.lastRevision(streamOf(paymentId));
  if ((await readModels.getAny(paymentId)) !== undefined) throw notInLog(paymentId);
};

/** The payment compared; undefined where there is none, or the token's merchant may not see it. */
const comparedFor = async (
  deps: ReconcilePaymentDeps,
  principal: Principal,
  paymentId: string,
  limit: number,
) => {
  const { provider, paymentLog } = deps.commands;
  try {
    const payment = await paymentLog.load(paymentId, 'store');
    if (payment === undefined) await rejectRemoved(deps, paymentId);
    const { merchantId } = principal;
    const own =
      merchantId === '*' || payment?.state.merchantId === merchantId ? payment : undefined;
    if (own === undefined) return undefined;
    const compared = await reconcilePayment(provider, own, limit);
    return { merchantId: own.state.merchantId, ...compared };
  } catch (error) {
    if (!(error instanceof UnreadableStream)) throw error;
    return unreadableFor(deps, principal, paymentId, error);
  }
};

const paymentRoute = routeWith<ReconcilePaymentDeps>();

export const RECONCILE_PAYMENT_ROUTES = {
  reconcilePayment: paymentRoute({
    request: {
      query: contract.PaymentReconciliationParameters,
      paymentId: 'INVALID_PAYMENT_ID',
    },
    responses: okJson(contract.PaymentReconciliation),
    handle: async (deps, { principal, paymentId, query }, reply) => {
      await deps.record(reply.request, { action: 'RECONCILE', paymentId });
      const compared = await comparedFor(deps, principal, paymentId, query.limit);
      if (compared === undefined) return reject(reply, 'PAYMENT_NOT_FOUND');
      reply.request.paymentId = paymentId;
      return sendJson(reply, { paymentId, ...compared });
    },
  }),
} satisfies Partial<RoutesOf<'command-api', ReconcilePaymentDeps>>;
