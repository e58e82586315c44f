/** The routes over the payments that the relay has parked. For tokens of all merchants. */
import { reject } from '../../shared/http/errors.ts';
import { NoParameters } from '../../shared/http/fields.ts';
import { asJson, okJson, type RoutesOf, routeWith, sendJson } from '../../shared/http/route.ts';
import type {} from '../../shared/http/server/app.ts';
import { RelayParkedList, RelayParkedRetries, RelayParkedRetry } from '../contract.ts';
import { orUntilLater } from '../projection-routes.ts';
import type { Relay } from './relay.ts';

export type RelayParkedDeps = { relay: Pick<Relay, 'status' | 'parked' | 'retryParked'> };

const LISTED_MAX = 1_000;

const UNTIL_LATER = {
  422: { description: 'No broker is set, so nothing is parked.' },
  503: {
    description: 'The relay of this process stands by, backs off or has halted.',
    headers: ['Retry-After'],
  },
} as const;

const listed = (notes: Awaited<ReturnType<Relay['parked']>>) =>
  Object.entries(notes)
    .map(([paymentId, parking]) => ({ paymentId, ...parking }))
    .sort((one, other) => one.since.localeCompare(other.since))
    .slice(0, LISTED_MAX);

const route = routeWith<RelayParkedDeps>();

export const RELAY_PARKED_ROUTES = {
  listRelayParked: route({
    request: { allMerchants: true, query: NoParameters },
    responses: okJson(RelayParkedList),
    handle: ({ relay }, _input, reply) =>
      orUntilLater(reply, async () => {
        const notes = await relay.parked();
        const { state, error } = relay.status();
        const why = error === undefined ? {} : { error };
        const count = Object.keys(notes).length;
        return sendJson(reply, { state, ...why, count, parked: listed(notes) });
      }),
  }),
  retryRelayParked: route({
    request: { allMerchants: true, paymentId: 'INVALID_PAYMENT_ID' },
    responses: {
      200: { description: 'What came of it.', content: asJson(RelayParkedRetry) },
      404: { description: 'The relay has not parked this payment.' },
      ...UNTIL_LATER,
    },
    handle: ({ relay }, { paymentId }, reply) =>
      orUntilLater(reply, async () => {
        reply.request.paymentId = paymentId;
        const [one] = await relay.retryParked(paymentId);
        return one === undefined
          ? reject(reply, 'PAYMENT_NOT_FOUND', ['the relay has not parked a payment with this id'])
          : sendJson(reply, one);
      }),
  }),
  retryAllRelayParked: route({
    request: { allMerchants: true },
    responses: {
      200: {
        description: 'What came of those that were tried.',
        content: asJson(RelayParkedRetries),
      },
      ...UNTIL_LATER,
    },
    handle: ({ relay }, _input, reply) =>
      orUntilLater(reply, async () => {
        const retried = await relay.retryParked();
        const stillParked = retried.filter(({ sent }) => !sent).length;
        const left = Object.keys(await relay.parked()).length - stillParked;
        return sendJson(reply, { retried, left: Math.max(0, left) });
      }),
  }),
} satisfies Partial<RoutesOf<'projector', RelayParkedDeps>>;
