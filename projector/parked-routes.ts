/**
 * The operator's routes over parked payments: which documents stopped at an event that could not be
 * applied, and a retry once the cause is gone (P5). Scope `ops:admin`; with a token of one merchant,
 * only that merchant's payments.
 */
import type { Principal } from '../shared/http/auth/tokens.ts';
import { reject } from '../shared/http/errors.ts';
import {
  asJson,
  okJson,
  type RequestForm,
  type Route,
  type RoutesOf,
  sendJson,
} from '../shared/http/route.ts';
import type {} from '../shared/http/server/app.ts';
import type { ParkedPayment, ReadModelsReader } from '../shared/read-models/port.ts';
import type { Projector } from './compose.ts';
import { ParkedList, ParkedRetry } from './contract.ts';
import { rejectUntilLater } from './projection-routes.ts';

export type ParkedDeps = {
  projector: Pick<Projector, 'retryParked'>;
  readModels: Pick<ReadModelsReader, 'parked' | 'getAny'>;
};

const LISTED_MAX = 1_000;

/** The parked payments that a principal may see. */
const parkedFor = async (
  { readModels }: ParkedDeps,
  { merchantId }: Principal,
): Promise<ParkedPayment[]> => {
  // A payment parked at its first event has no document that names its merchant.
  const isVisible = async ({ paymentId }: ParkedPayment): Promise<boolean> =>
    merchantId === '*' || (await readModels.getAny(paymentId))?.merchantId === merchantId;
  const visible: ParkedPayment[] = [];
  for (const parked of await readModels.parked(LISTED_MAX)) {
    if (await isVisible(parked)) visible.push(parked);
  }
  return visible;
};

const route = <const F extends RequestForm>(own: Route<ParkedDeps, F>) => own;

export const PARKED_ROUTES = {
  listParked: route({
    request: {},
    responses: okJson(ParkedList),
    handle: async (deps, { principal }, reply) =>
      sendJson(reply, { parked: await parkedFor(deps, principal) }),
  }),
  retryParked: route({
    request: { paymentId: 'INVALID_PAYMENT_ID' },
    responses: {
      200: { description: 'The response.', content: asJson(ParkedRetry), unrecorded: true },
    },
    handle: async (deps, { principal, paymentId }, reply) => {
      const { projector, readModels } = deps;
      const hasThisId = (one: ParkedPayment) => one.paymentId === paymentId;
      const isParked = (await parkedFor(deps, principal)).some(hasThisId);
      if (!isParked) return reject(reply, 'PAYMENT_NOT_FOUND', ['no parked payment has this id']);
      reply.request.paymentId = paymentId;
      let whole: boolean;
      try {
        whole = await projector.retryParked(paymentId);
      } catch (error) {
        return rejectUntilLater(reply, error);
      }
      const parked = (await readModels.parked(LISTED_MAX)).find(hasThisId);
      const stopped = parked && { at: parked.revision, reason: parked.reason };
      return sendJson(reply, { paymentId, whole, ...stopped });
    },
  }),
} satisfies Partial<RoutesOf<'projector', ParkedDeps>>;
