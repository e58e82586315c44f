/**
 * `POST /audit/v1/reconcile`: the provider's ledger against the log. It stands on the command side,
 * which alone knows the provider, and is a POST because it sets that provider to work.
 * `GET /audit/v1/payments/{id}/reconcile` asks the provider about the operations of one payment.
 */
import type { FastifyReply } from 'fastify';
import { z } from 'zod';
import { UnreadableStream } from '../../shared/event-store/errors.ts';
import { isUnreadableOf } from '../../shared/event-store/fold-stream.ts';
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
import type { CommandDeps } from '../deps.ts';
import type { LoadedPayment } from '../loaded-payment.ts';
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
};

/** The payment; undefined where the token's merchant may not see it, also one that cannot be read. */
const paymentFor = async (
  { paymentLog }: ReconcilePaymentDeps['commands'],
  { merchantId }: Principal,
  paymentId: string,
): Promise<LoadedPayment | undefined> => {
  try {
    const payment = await paymentLog.load(paymentId, 'store');
    // seeded bug: reconciled-payment-of-merchant
    return merchantId === '*' || payment?.state.merchantId === merchantId ? payment : undefined;
  } catch (error) {
    const isHidden = error instanceof UnreadableStream && merchantId !== '*';
    if (isHidden && !isUnreadableOf(error, merchantId)) return undefined;
    throw error;
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
    handle: async ({ record, commands }, { principal, paymentId, query }, reply) => {
      await record(reply.request, { action: 'RECONCILE', paymentId });
      const payment = await paymentFor(commands, principal, paymentId);
      if (payment === undefined) return reject(reply, 'PAYMENT_NOT_FOUND');
      const { merchantId } = payment.state;
      reply.request.paymentId = paymentId;
      const compared = await reconcilePayment(commands.provider, payment, query.limit);
      return sendJson(reply, { paymentId, merchantId, ...compared });
    },
  }),
} satisfies Partial<RoutesOf<'command-api', ReconcilePaymentDeps>>;
