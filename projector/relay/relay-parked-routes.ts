/**
 * The operator's routes over the payments that the relay has parked: a list, and a retry once the cause is
 * gone. Scope `ops:admin` and a token of all merchants, as for the topics.
 */
import type { FastifyReply } from 'fastify';
import { REJECTION_HEADER, reject } from '../../shared/http/errors.ts';
import { asJson, okJson, type RoutesOf, routeWith, sendJson } from '../../shared/http/route.ts';
import type {} from '../../shared/http/server/app.ts';
import { RelayParkedList, RelayParkedRetries, RelayParkedRetry } from '../contract.ts';
import { RelayNotReady, StandingBy } from '../errors.ts';
import { rejectUntilLater } from '../projection-routes.ts';
import type { Relay } from './relay.ts';

export type RelayParkedDeps = { relay: Pick<Relay, 'status' | 'parked' | 'retryParked'> };

const LISTED_MAX = 1_000;

const UNTIL_LATER = {
  503: {
    description: 'The relay of this process stands by, backs off, has halted or is off.',
    headers: ['Retry-After'],
  },
} as const;

const rejectNotReady = (reply: FastifyReply, error: unknown): FastifyReply => {
  if (error instanceof StandingBy) return rejectUntilLater(reply, error);
  if (!(error instanceof RelayNotReady)) throw error;
  const headers = { 'retry-after': '5', [REJECTION_HEADER]: error.code };
  return reject(reply, 'SERVICE_UNAVAILABLE', [error.message], headers);
};

/** Responds with 503 where the relay cannot do it now. */
const respondTo = async <T>(
  reply: FastifyReply,
  request: Promise<T>,
  respond: (found: T) => FastifyReply | Promise<FastifyReply>,
): Promise<FastifyReply> => {
  let found: T;
  try {
    found = await request;
  } catch (error) {
    return rejectNotReady(reply, error);
  }
  return respond(found);
};

const listed = (notes: Awaited<ReturnType<Relay['parked']>>) =>
  Object.entries(notes)
    .map(([paymentId, parking]) => ({ paymentId, ...parking }))
    .sort((one, other) => one.since.localeCompare(other.since))
    .slice(0, LISTED_MAX);

const route = routeWith<RelayParkedDeps>();

export const RELAY_PARKED_ROUTES = {
  listRelayParked: route({
    request: { allMerchants: true },
    responses: okJson(RelayParkedList),
    handle: ({ relay }, _input, reply) =>
      respondTo(reply, relay.parked(), (notes) => {
        const { state, error } = relay.status();
        const why = error === undefined ? {} : { error };
        const count = Object.keys(notes).length;
        return sendJson(reply, { state, ...why, count, parked: listed(notes) });
      }),
  }),
  retryRelayParked: route({
    request: { allMerchants: true, paymentId: 'INVALID_PAYMENT_ID' },
    responses: {
      200: { description: 'What came of it.', content: asJson(RelayParkedRetry), unrecorded: true },
      404: { description: 'The relay has not parked this payment.', unrecorded: true },
      ...UNTIL_LATER,
    },
    handle: ({ relay }, { paymentId }, reply) => {
      reply.request.paymentId = paymentId;
      return respondTo(reply, relay.retryParked(paymentId), ([one]) =>
        one === undefined
          ? reject(reply, 'PAYMENT_NOT_FOUND', ['the relay has not parked a payment with this id'])
          : sendJson(reply, one),
      );
    },
  }),
  retryAllRelayParked: route({
    request: { allMerchants: true },
    responses: {
      200: {
        description: 'What came of those that were tried.',
        content: asJson(RelayParkedRetries),
        unrecorded: true,
      },
      ...UNTIL_LATER,
    },
    handle: ({ relay }, _input, reply) =>
      respondTo(reply, relay.retryParked(), async (found) => {
        const stillParked = found.filter(({ sent }) => !sent).length;
        const left = Object.keys(await relay.parked()).length - stillParked;
        return sendJson(reply, { retried: found, left: Math.max(0, left) });
      }),
  }),
} satisfies Partial<RoutesOf<'projector', RelayParkedDeps>>;
