import type { FastifyRequest } from 'fastify';
import type { EventStore } from '../shared/event-store/port.ts';
import { keyIdOf, keysOf } from '../shared/event-store/seals.ts';
import { contextOf } from '../shared/http/event-context.ts';
import { readJson } from '../shared/http/json-body.ts';
import { okJson, type RoutesOf, readBy, routeWith, sendJson } from '../shared/http/route.ts';
import type {} from '../shared/http/server/app.ts';
import { AcknowledgeBreakRequest, BreakAcknowledged, LogStatus } from './contract.ts';
import type { Sealer } from './seals/sealer.ts';
import { acknowledgeBreak } from './verification/acknowledge.ts';
import type { ScheduledVerification } from './verification/schedule.ts';

export type LogStatusDeps = {
  verification: Pick<ScheduledVerification, 'status'>;
  sealer: Pick<Sealer, 'last'>;
  store: Pick<EventStore, 'append'>;
};

const readBreak = (request: FastifyRequest) => {
  const json = readJson(request);
  return json.ok ? readBy(AcknowledgeBreakRequest, json.value) : json;
};

const timeOf = (ms: number): string | null => (ms === 0 ? null : new Date(ms).toISOString());

const verificationOf = ({ verification }: LogStatusDeps) => {
  const { lastRunMs, lastOkMs, broken } = verification.status();
  return { lastRunAt: timeOf(lastRunMs), lastOkAt: timeOf(lastOkMs), broken: broken ?? null };
};

const sealOf = ({ sealer }: LogStatusDeps) => {
  const last = sealer.last();
  if (last === undefined) return null;
  const { event, time: sealedAt } = last;
  return { position: event.data.position, sealedAt, keyId: keyIdOf(keysOf(event).after) };
};

const route = routeWith<LogStatusDeps>();

export const LOG_ROUTES = {
  logStatus: route({
    request: { allMerchants: true },
    responses: okJson(LogStatus),
    handle: (deps, _input, reply) =>
      sendJson(reply, { verification: verificationOf(deps), seal: sealOf(deps) }),
  }),
  acknowledgeBreak: route({
    request: {
      // A break is of the log, and so of every merchant.
      allMerchants: true,
      read: readBreak,
      body: { schema: AcknowledgeBreakRequest, required: true },
    },
    responses: okJson(BreakAcknowledged),
    handle: async ({ store }, { principal, content }, reply) => {
      const { actor } = principal;
      const context = contextOf({ actor, requestId: reply.request.id });
      const { time: acknowledgedAt } = await acknowledgeBreak(store, content, context);
      const { stream, revision, reason, note } = content;
      return sendJson(reply, { stream, revision, reason, note, actor, acknowledgedAt });
    },
  }),
} satisfies Partial<RoutesOf<'projector', LogStatusDeps>>;
