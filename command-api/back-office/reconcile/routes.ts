/** On the command side, which knows the provider; a POST, because it sets the provider to work. */
import { z } from 'zod';
import type { Recorder } from '../../../audit/access-recorder.ts';
import { rejectBusy } from '../../../audit/live.ts';
import { UnreadableStream } from '../../../shared/event-store/errors.ts';
import { isUnreadableOf } from '../../../shared/event-store/fold-stream.ts';
import type { EventStore } from '../../../shared/event-store/port.ts';
import { type ErrorCode, errorBody, RETRY_LATER, reject } from '../../../shared/http/errors.ts';
import type { Principal } from '../../../shared/http/request.ts';
import { okJson, type RoutesOf, routeWith, sendJson } from '../../../shared/http/route.ts';
import {
  accepts,
  EVENT_STREAM,
  type Streams,
  serverSent,
} from '../../../shared/http/server/streams.ts';
import { streamOf } from '../../../shared/payment/events.ts';
import { ReadModelsUnavailable } from '../../../shared/read-models/errors.ts';
import type { ReadModelsReader } from '../../../shared/read-models/port.ts';
import { onError } from '../../../shared/runtime/error-text.ts';
import type { CommandDeps } from '../../deps.ts';
import { notInLog } from '../../payment-log.ts';
import * as contract from './contract.ts';
import { LedgerUnavailable } from './reconcile.ts';
import { reconcilePayment } from './reconcile-payment.ts';

export type ReconcileDeps = {
  record: Recorder;
  reconcile(part: contract.ReconciliationPart): Promise<contract.Reconciliation>;
  streams: Streams;
};

const NO_LEDGER = ["the provider's ledger cannot be read now; nothing was changed"];
const NO_READ_MODELS = [
  'the read models cannot be read now, and they alone know a payment that was removed from the log; nothing was changed',
];

/** Throws any other error. */
const whyFailed = (error: unknown): [code: ErrorCode, details: string[]] => {
  if (error instanceof LedgerUnavailable) return ['PROVIDER_UNAVAILABLE', NO_LEDGER];
  if (error instanceof ReadModelsUnavailable) return ['SERVICE_UNAVAILABLE', NO_READ_MODELS];
  throw error;
};

async function* resultTexts(
  compare: () => Promise<contract.Reconciliation>,
): AsyncGenerator<string> {
  yield await compare().then(
    (result) => serverSent('result', result),
    (error: unknown) => {
      const [code, details] = whyFailed(error);
      const body = errorBody(code, details, new Date().toISOString());
      return serverSent('failed', JSON.parse(body));
    },
  );
}

const route = routeWith<ReconcileDeps>();

export const RECONCILE_ROUTES = {
  reconcile: route({
    // An operation that only the provider knows belongs to no merchant yet.
    request: { allMerchants: true, query: contract.ReconciliationParameters },
    responses: okJson(contract.Reconciliation, { [EVENT_STREAM]: z.string() }),
    handle: async (deps, { query }, reply) => {
      const compare = () => deps.reconcile(query);
      const isStream = accepts(reply, EVENT_STREAM);
      if (isStream && !deps.streams.take(reply)) return rejectBusy(reply);
      await deps.record(reply.request, { action: 'RECONCILE' });
      if (isStream) return deps.streams.send(reply, EVENT_STREAM, () => resultTexts(compare));
      return compare().then(
        (result) => sendJson(reply, result),
        (error: unknown) => reject(reply, ...whyFailed(error), RETRY_LATER),
      );
    },
  }),
} satisfies Partial<RoutesOf<'command-api', ReconcileDeps>>;

export type ReconcilePaymentDeps = {
  record: Recorder;
  commands: Pick<CommandDeps, 'provider' | 'paymentLog'>;
  store: Pick<EventStore, 'lastRevision'>;
  readModels: Pick<ReadModelsReader, 'getAny'>;
};

const unreadableFor = async (
  { readModels }: ReconcilePaymentDeps,
  { merchantId: only }: Principal,
  paymentId: string,
  error: UnreadableStream,
) => {
  const document = await readModels.getAny(paymentId);
  const isOwn = document?.merchantId === only || isUnreadableOf(error, only);
  if (only !== '*' && !isOwn) return undefined;
  return {
    merchantId: document?.merchantId ?? (isOwn ? only : ''),
    ok: false,
    operations: [],
    notCompared: 0,
    unreadable: error.message,
  };
};

const comparedFor = async (
  { commands, store, readModels }: ReconcilePaymentDeps,
  { merchantId: only }: Principal,
  paymentId: string,
  limit: number,
) => {
  const payment = await commands.paymentLog.load(paymentId, 'store');
  if (payment === undefined) {
    // Throws StreamNotWhole where the stream was deleted.
    await store.lastRevision(streamOf(paymentId));
    if ((await readModels.getAny(paymentId)) !== undefined) throw notInLog(paymentId);
    return undefined;
  }
  const { merchantId } = payment.state;
  if (only !== '*' && only !== merchantId) return undefined;
  return { merchantId, ...(await reconcilePayment(commands.provider, payment, limit)) };
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
      const compared = await comparedFor(deps, principal, paymentId, query.limit).catch(
        onError(UnreadableStream, (error) => unreadableFor(deps, principal, paymentId, error)),
      );
      if (compared === undefined) return reject(reply, 'PAYMENT_NOT_FOUND');
      reply.request.paymentId = paymentId;
      return sendJson(reply, { paymentId, ...compared });
    },
  }),
} satisfies Partial<RoutesOf<'command-api', ReconcilePaymentDeps>>;
