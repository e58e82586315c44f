import type { FastifyReply } from 'fastify';
import type { z } from 'zod';
import { rejectScope } from '../shared/http/auth/hooks.ts';
import { mayUse } from '../shared/http/auth/tokens.ts';
import { type CursorPlace, cursorOf, placeAfter } from '../shared/http/cursor.ts';
import { reject } from '../shared/http/errors.ts';
import { NoParameters } from '../shared/http/fields.ts';
import { onlyOf, type Principal } from '../shared/http/request.ts';
import { okJson, type RoutesOf, routeWith, sendJson } from '../shared/http/route.ts';
import type {} from '../shared/http/server/app.ts';
import { inTurn } from '../shared/http/server/shares.ts';
import { accepts, NDJSON } from '../shared/http/server/streams.ts';
import type { PaymentResponse } from '../shared/payment/fields.ts';
import { foldDamaged } from '../shared/read-models/fold-damaged.ts';
import type { PaymentDocument, PaymentSearch } from '../shared/read-models/port.ts';
import {
  AuditExplanation,
  AuditFound,
  AuditSearchPage,
  AuditStateOrNone,
  AuditTimeline,
  AuditVerification,
} from './contract.ts';
import { type AuditDeps, asLines } from './deps.ts';
import { explain, explainBroken } from './explain.ts';
import { exportOfPayment, sendExport } from './export.ts';
import { findHistory, foldProven, shownTexts, timelineOf } from './history.ts';
import { rejectBusy } from './live.ts';
import {
  ExplainParameters,
  SEARCH_LIMIT_DEFAULT,
  SearchParameters,
  StateParameters,
  TimelineParameters,
} from './parameters.ts';
import { eventsUntil, type NoState, stateOf } from './state.ts';
import { verifyPayment } from './verification.ts';

const foundOf = ({ merchantId, revision, body }: PaymentDocument): AuditFound => {
  const payment = JSON.parse(body) as PaymentResponse;
  const { last4 } = payment.paymentMethod.card;
  return AuditFound.parse({ ...payment, merchantId, last4, revision });
};

/** Newest first: payments created later do not shift a page. `only` is the merchant of the actor. Throws ReadModelsUnavailable and StoreUnavailable. */
const searchPage = async (
  { store, readModels }: Pick<AuditDeps, 'store' | 'readModels'>,
  requested: z.output<typeof SearchParameters>,
  only: string | undefined,
  after: CursorPlace | undefined,
) => {
  const { q, merchant, cursor: _cursor, limit = SEARCH_LIMIT_DEFAULT, ...filters } = requested;
  // The response for another merchant is the same as for a search that finds nothing.
  if (only !== undefined && merchant !== undefined && merchant !== only)
    return { payments: [], next: null };
  const search: PaymentSearch = { merchantId: only ?? merchant, text: q, ...filters, after };
  const { documents, searchedTo } = await readModels.search(search, limit);
  const payments = (await foldDamaged(store, search, documents)).map(foundOf);
  if (searchedTo === undefined) return { payments, next: null };
  return { payments, next: cursorOf(searchedTo), searchedTo: searchedTo.createdAt };
};

const rejectMoment = (reply: FastifyReply, { none, detail }: NoState): FastifyReply =>
  reject(reply, none === 'not yet' ? 'PAYMENT_NOT_FOUND' : 'INVALID_REQUEST', [detail]);

type Reading = {
  principal: Principal;
  paymentId: string;
  query: { personal?: 'true' | 'false' | undefined };
};

/** With the way to its texts of a person: that they were opened is recorded with the access. */
const findShown = async (
  deps: AuditDeps,
  input: Reading,
  reply: FastifyReply,
  action: 'EVENTS' | 'STATE',
) => {
  const { personal } = input.query;
  const may = mayUse(input.principal, 'audit:personal');
  if (personal === 'true' && !may) {
    rejectScope(reply, input.principal, 'audit:personal');
    return undefined;
  }
  const opens = may && personal !== 'false';
  const parameters = opens ? { personal: 'true' } : {};
  const found = await findHistory(deps, input, reply, { action, parameters });
  return found && { ...found, texts: await shownTexts(deps.openText, found, opens) };
};

const paymentId = 'INVALID_PAYMENT_ID' as const;

const route = routeWith<AuditDeps>();

export const AUDIT_PAYMENT_ROUTES = {
  searchPayments: route({
    request: { query: SearchParameters },
    responses: okJson(AuditSearchPage),
    handle: async (deps, { principal, query }, reply) => {
      const after = query.cursor === undefined ? undefined : placeAfter(query.cursor);
      if (query.cursor !== undefined && after === undefined)
        return reject(reply, 'INVALID_REQUEST', ['cursor must be the next of an earlier page']);
      await deps.record(reply.request, { action: 'SEARCH' });
      const page = await inTurn('searches', reply, () =>
        searchPage(deps, query, onlyOf(principal), after),
      );
      return page === undefined ? reply : sendJson(reply, page);
    },
  }),
  paymentEvents: route({
    request: { query: TimelineParameters, paymentId },
    responses: okJson(AuditTimeline, asLines),
    handle: async (deps, input, reply) => {
      if (accepts(reply, NDJSON)) {
        if (!deps.streams.take(reply)) return rejectBusy(reply);
        const whole = await findHistory(deps, input, reply, { action: 'EXPORT' });
        return whole ? sendExport(deps, await exportOfPayment(deps, whole), reply) : reply;
      }
      const found = await findShown(deps, input, reply, 'EVENTS');
      if (found === undefined) return reply;
      const { merchantId, broken } = found;
      const events = timelineOf(found.events, found.texts, broken);
      return sendJson(reply, { paymentId: found.paymentId, merchantId, events, broken });
    },
  }),
  paymentState: route({
    request: { query: StateParameters, paymentId },
    responses: okJson(AuditStateOrNone),
    handle: async (deps, input, reply) => {
      const found = await findShown(deps, input, reply, 'STATE');
      if (found === undefined) return reply;
      const { merchantId, broken, texts } = found;
      const state = foldProven(found, (events) => stateOf(events, input.query, texts, broken));
      if (!('none' in state)) return sendJson(reply, state);
      if (state.none === 'broken')
        return sendJson(reply, { paymentId: found.paymentId, merchantId, broken });
      return rejectMoment(reply, state);
    },
  }),
  verifyPayment: route({
    request: { query: NoParameters, paymentId },
    responses: okJson(AuditVerification),
    handle: async (deps, input, reply) => {
      const found = await findHistory(deps, input, reply, { action: 'VERIFY' });
      if (found === undefined) return reply;
      return sendJson(reply, verifyPayment(found.paymentId, found));
    },
  }),
  explainCommand: route({
    request: { query: ExplainParameters, paymentId },
    responses: okJson(AuditExplanation),
    handle: async (deps, input, reply) => {
      const { operationsMax, providers = [] } = deps;
      const found = await findHistory(deps, input, reply, { action: 'EXPLAIN' });
      if (found === undefined) return reply;
      const command = { ...input.query, operationsMax, providers };
      const explanation = foldProven(found, (events) => {
        const until = eventsUntil(events, input.query, found.broken);
        return 'none' in until ? until : explain(until, command);
      });
      if (!('none' in explanation)) return sendJson(reply, explanation);
      if (explanation.none !== 'broken' || found.broken === undefined)
        return rejectMoment(reply, explanation);
      return sendJson(reply, explainBroken(found.paymentId, command, found.broken));
    },
  }),
} satisfies Partial<RoutesOf<'audit', AuditDeps>>;
