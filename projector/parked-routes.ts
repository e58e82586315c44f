/** The routes over parked payments (P5); with a token of one merchant, over that merchant's own. */

import { reject } from '../shared/http/errors.ts';
import { NoParameters } from '../shared/http/fields.ts';
import { okJson, type RoutesOf, routeWith, sendJson } from '../shared/http/route.ts';
import type {} from '../shared/http/server/app.ts';
import { parkedPayments } from '../shared/read-models/pages.ts';
import type { ParkedPayment, ReadModelsReader } from '../shared/read-models/port.ts';
import { orUntilLater } from '../shared/subscription/until-later.ts';
import type { Projector } from './compose.ts';
import { ParkedList, ParkedRetry } from './contract.ts';

export type ParkedDeps = {
  projector: Pick<Projector, 'retryParked'>;
  readModels: Pick<ReadModelsReader, 'parked' | 'getAny'>;
};

const LISTED_MAX = 1_000;
const PAGE = 1_000;

/** A payment parked at its first event has no document that names its merchant. */
const isVisible = async (
  { getAny }: ParkedDeps['readModels'],
  { paymentId }: ParkedPayment,
  merchantId: string,
): Promise<boolean> => merchantId === '*' || (await getAny(paymentId))?.merchantId === merchantId;

const findParked = async ({ readModels }: ParkedDeps, paymentId: string) => {
  for await (const parked of parkedPayments(readModels, PAGE)) {
    if (parked.paymentId === paymentId) return parked;
  }
  return undefined;
};

const route = routeWith<ParkedDeps>();

export const PARKED_ROUTES = {
  listParked: route({
    request: { query: NoParameters },
    responses: okJson(ParkedList),
    handle: async ({ readModels }, { principal }, reply) => {
      const visible: ParkedPayment[] = [];
      for await (const parked of parkedPayments(readModels, PAGE)) {
        if (await isVisible(readModels, parked, principal.merchantId)) visible.push(parked);
        if (visible.length === LISTED_MAX) break;
      }
      return sendJson(reply, { parked: visible });
    },
  }),
  retryParked: route({
    request: { paymentId: 'INVALID_PAYMENT_ID' },
    responses: okJson(ParkedRetry),
    handle: async (deps, { principal, paymentId }, reply) => {
      const { projector, readModels } = deps;
      const found = await findParked(deps, paymentId);
      const isSeen = found && (await isVisible(readModels, found, principal.merchantId));
      if (isSeen !== true)
        return reject(reply, 'PAYMENT_NOT_FOUND', ['no parked payment has this id']);
      reply.request.paymentId = paymentId;
      return orUntilLater(reply, async () => {
        const whole = await projector.retryParked(paymentId);
        const parked = await findParked(deps, paymentId);
        const stopped = parked && { at: parked.revision, reason: parked.reason };
        return sendJson(reply, { paymentId, whole, ...stopped });
      });
    },
  }),
} satisfies Partial<RoutesOf<'projector', ParkedDeps>>;
