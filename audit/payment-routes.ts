/** The audit routes about one payment, and the search that finds it. */
import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import { isOfPayment, type RecordedPaymentEvent } from '../shared/event-store/fold-stream.ts';
import type { Access } from '../shared/http/access-recorder.ts';
import { placeOf } from '../shared/http/cursor.ts';
import { reject } from '../shared/http/errors.ts';
import { NDJSON } from '../shared/http/server/streams.ts';
import { ExplainParameters, NoParameters, SearchParameters, StateParameters } from './contract.ts';
import {
  type AuditDeps,
  accepts,
  onlyOf,
  type PaymentRoute,
  parametersOf,
  paymentIdOf,
  principalOf,
  sendJson,
} from './deps.ts';
import { explain } from './explain.ts';
import { COMPLETENESS_HEADER, GUARANTEE_HEADER } from './export-lines.ts';
import { type History, historyOf, timelineOf } from './history.ts';
import { linesOf } from './log.ts';
import { searchPage } from './search.ts';
import { stateOf } from './state.ts';
import { verifyPayment } from './verification.ts';

type Found = History & { paymentId: string };

/** The events where all of them can be read; else refused, with the place of the first that cannot. */
const readable = (reply: FastifyReply, { events }: Found): RecordedPaymentEvent[] | undefined => {
  const good: RecordedPaymentEvent[] = [];
  for (const event of events) {
    if ('unreadable' in event || !isOfPayment(event)) {
      const why = 'unreadable' in event ? event.unreadable : 'is not an event of a payment';
      const place = `the event at revision ${event.revision} ${why}`;
      reject(reply, 'INTERNAL_ERROR', [`${place}; verify the payment`]);
      return undefined;
    }
    good.push(event);
  }
  return good;
};

/** Registers the routes below `/audit/v1/payments`. */
export const registerPaymentRoutes = (
  app: FastifyInstance,
  authorize: onRequestHookHandler,
  deps: AuditDeps,
): void => {
  const found = async (
    request: FastifyRequest<PaymentRoute>,
    reply: FastifyReply,
    action: Access['action'],
  ): Promise<Found | undefined> => {
    const paymentId = paymentIdOf(request, reply);
    if (paymentId === undefined) return undefined;
    // seeded bug: reading-recorded
    await deps.record(request, { action, paymentId });
    const history = await historyOf(deps, principalOf(request), paymentId);
    if (history !== undefined) {
      // Only now is it known to be an id, and nothing else that somebody has typed.
      request.paymentId = paymentId;
      return { ...history, paymentId };
    }
    reject(reply, 'PAYMENT_NOT_FOUND');
    return undefined;
  };

  app.get('/audit/v1/payments', { onRequest: authorize }, async (request, reply) => {
    const requested = parametersOf(SearchParameters, request, reply);
    if (requested === undefined) return reply;
    const after = requested.cursor === undefined ? undefined : placeOf(requested.cursor);
    if (requested.cursor !== undefined && after === undefined) {
      return reject(reply, 'INVALID_REQUEST', ['cursor must be the next of an earlier page']);
    }
    await deps.record(request, { action: 'SEARCH' });
    return sendJson(reply, await searchPage(deps, requested, onlyOf(principalOf(request)), after));
  });

  const at = (name: string) => `/audit/v1/payments/:paymentId/${name}`;

  app.get<PaymentRoute>(at('events'), { onRequest: authorize }, async (request, reply) => {
    const requested = parametersOf(NoParameters, request, reply);
    if (requested === undefined) return reply;
    const exporting = accepts(request, NDJSON);
    const history = await found(request, reply, exporting ? 'EXPORT' : 'EVENTS');
    if (history === undefined) return reply;
    const { paymentId, merchantId, events, forms } = history;
    if (!exporting) return sendJson(reply, { paymentId, merchantId, events: timelineOf(events) });
    reply.header(COMPLETENESS_HEADER, 'streams').header(GUARANTEE_HEADER, 'stream');
    return deps.streams.send(reply, NDJSON, () => linesOf(forms));
  });

  app.get<PaymentRoute>(at('state'), { onRequest: authorize }, async (request, reply) => {
    const requested = parametersOf(StateParameters, request, reply);
    if (requested === undefined) return reply;
    const history = await found(request, reply, 'STATE');
    const events = history === undefined ? undefined : readable(reply, history);
    if (events === undefined) return reply;
    const state = stateOf(events, requested);
    if (!('none' in state)) return sendJson(reply, state);
    const code = state.none === 'not yet' ? 'PAYMENT_NOT_FOUND' : 'INVALID_REQUEST';
    return reject(reply, code, [state.detail]);
  });

  app.get<PaymentRoute>(at('verify'), { onRequest: authorize }, async (request, reply) => {
    const requested = parametersOf(NoParameters, request, reply);
    if (requested === undefined) return reply;
    const history = await found(request, reply, 'VERIFY');
    if (history === undefined) return reply;
    const { paymentId, merchantId, forms } = history;
    return sendJson(reply, verifyPayment(paymentId, merchantId, forms));
  });

  app.get<PaymentRoute>(at('explain'), { onRequest: authorize }, async (request, reply) => {
    const requested = parametersOf(ExplainParameters, request, reply);
    if (requested === undefined) return reply;
    const history = await found(request, reply, 'EXPLAIN');
    const events = history === undefined ? undefined : readable(reply, history);
    return events === undefined ? reply : sendJson(reply, explain(events, requested));
  });
};
