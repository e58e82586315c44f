import { appendControl, NO_EVENTS } from '../shared/event-store/control-stream.ts';
import type { EventStore } from '../shared/event-store/port.ts';
import { reject } from '../shared/http/errors.ts';
import { NoParameters } from '../shared/http/fields.ts';
import { contextOf } from '../shared/http/request.ts';
import {
  asJson,
  jsonBody,
  okJson,
  type RoutesOf,
  routeWith,
  sendJson,
} from '../shared/http/route.ts';
import type {} from '../shared/http/server/app.ts';
import { acknowledgementStreamOf } from '../shared/payment/audit-events.ts';
import { newUlid } from '../shared/runtime/ids.ts';
import { AcknowledgeBreakRequest, BreakAcknowledged, LogStatus } from './contract.ts';
import type { OpenedSealer } from './seals/open.ts';
import { keyIdOf, keysOf } from './seals/seals.ts';
import type { ScheduledVerification } from './verification-schedule.ts';

export type LogStatusDeps = {
  verification: Pick<ScheduledVerification, 'status' | 'hasNamed'>;
  sealer: Pick<OpenedSealer, 'last'>;
  store: Pick<EventStore, 'append'>;
};

const timeOf = (ms: number): string | null => (ms === 0 ? null : new Date(ms).toISOString());

const sealOf = ({ sealer }: LogStatusDeps) => {
  const last = sealer.last();
  if (last === undefined) return null;
  const { event, time: sealedAt } = last;
  return { position: event.data.position, sealedAt, keyId: keyIdOf(keysOf(event).after) };
};

const NOT_NAMED = [
  'the last verification of the log named no such break; verify it first: payments verify --all',
];

const route = routeWith<LogStatusDeps>();

export const LOG_ROUTES = {
  logStatus: route({
    request: { allMerchants: true, query: NoParameters },
    responses: okJson(LogStatus),
    handle: (deps, _input, reply) => {
      const { lastRunMs, lastOkMs, broken = null } = deps.verification.status();
      const times = { lastRunAt: timeOf(lastRunMs), lastOkAt: timeOf(lastOkMs) };
      return sendJson(reply, { verification: { ...times, broken }, seal: sealOf(deps) });
    },
  }),
  acknowledgeBreak: route({
    request: {
      // A break is of the log, and so of every merchant.
      allMerchants: true,
      person: true,
      ...jsonBody(AcknowledgeBreakRequest),
    },
    responses: {
      200: { description: 'The response.', content: asJson(BreakAcknowledged), unrecorded: true },
      422: { description: 'The last verification named no such break.' },
    },
    handle: async ({ store, verification }, { principal, content }, reply) => {
      if (!(await verification.hasNamed(content)))
        return reject(reply, 'BUSINESS_RULE_VIOLATION', NOT_NAMED);
      const { actor } = principal;
      const context = contextOf({ actor, requestId: reply.request.id });
      const { stream, revision, reason, digest, note } = content;
      const data = { stream, revision, reason, ...(digest !== undefined && { digest }), note };
      const event = { type: 'LogBreakAcknowledged', data } as const;
      // In a stream of its own, so that no foreign event is in its way.
      const own = acknowledgementStreamOf(newUlid());
      const [stored] = await appendControl(store, own, NO_EVENTS, [event], context);
      const acknowledgedAt = stored?.time;
      return sendJson(reply, { stream, revision, reason, note, actor, acknowledgedAt });
    },
  }),
} satisfies Partial<RoutesOf<'projector', LogStatusDeps>>;
