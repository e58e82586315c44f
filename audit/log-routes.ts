/** The routes over the whole log: its pages, exports, live events, verification, status and acknowledged breaks. */
import type { FastifyReply } from 'fastify';
import type { z } from 'zod';
import { logIdOf } from '../shared/event-store/chain.ts';
import { appendControl, NO_EVENTS } from '../shared/event-store/control-stream.ts';
import type { EventStore } from '../shared/event-store/port.ts';
import { JSON_TYPE, reject } from '../shared/http/errors.ts';
import { NoParameters } from '../shared/http/fields.ts';
import { contextOf, onlyOf, senderOf } from '../shared/http/request.ts';
import { jsonBody, okJson, type RoutesOf, routeWith, sendJson } from '../shared/http/route.ts';
import { inTurn, whenGone } from '../shared/http/server/shares.ts';
import { accepts, EVENT_STREAM, NDJSON, serverSent } from '../shared/http/server/streams.ts';
import { ACKNOWLEDGEMENT_STREAMS } from '../shared/payment/audit-events.ts';
import { newUlid } from '../shared/runtime/ids.ts';
import { resultOf } from '../shared/runtime/jobs.ts';
import {
  AcknowledgeBreakRequest,
  AuditLogPage,
  AuditVerification,
  BreakAcknowledged,
  LogStatus,
} from './contract.ts';
import { type AuditDeps, asEvents, asLines } from './deps.ts';
import { beginLogRead, exportOfLog, hasSeals, sendExport } from './export.ts';
import { rejectBusy, sendLive } from './live.ts';
import { eventText, pageText, pastEvents } from './log.ts';
import { hasGoodSignature, type Manifest } from './manifest.ts';
import {
  LogParameters,
  NO_EVENTS_POSITION,
  readLastEventId,
  rejectPlace,
  StreamParameters,
  VerifyParameters,
} from './parameters.ts';
import type { OpenedSealer } from './seals/open.ts';
import { keyIdOf, keysOf } from './seals/seals.ts';
import { sealsOf } from './seals/stored-seals.ts';
import { type KeptHead, type VerifiedScope, verifyLog } from './verification.ts';
import type { ScheduledVerification } from './verification-schedule.ts';

async function* verificationTexts(deps: AuditDeps, scope: VerifiedScope): AsyncGenerator<string> {
  const steps = verifyLog(deps, scope);
  let step = await steps.next();
  for (; step.done !== true; step = await steps.next()) yield serverSent('progress', step.value);
  if (step.value !== undefined) yield serverSent('result', step.value);
}

const verify = async (
  deps: AuditDeps,
  scope: Omit<VerifiedScope, 'signal'>,
  reply: FastifyReply,
): Promise<FastifyReply> => {
  if (accepts(reply, EVENT_STREAM)) {
    const source = (signal: AbortSignal) => verificationTexts(deps, { ...scope, signal });
    return deps.streams.send(reply, EVENT_STREAM, source);
  }
  const leaving = new AbortController();
  whenGone(reply.raw, () => leaving.abort());
  const result = await resultOf(verifyLog(deps, { ...scope, signal: leaving.signal }));
  return result === undefined
    ? rejectBusy(reply, 'the verification was aborted')
    : sendJson(reply, result);
};

const route = routeWith<AuditDeps>();

const NO_KEYS = 'keys needs a store of keys and a token of all merchants';

const signatureIn = async (
  { store, sealingKey }: AuditDeps,
  manifest: Manifest,
): Promise<'GOOD' | 'NOT_GOOD' | 'NONE'> => {
  if (manifest.signature === undefined) return 'NONE';
  // What is left of removed seals is no proof, and the export can still be verified.
  const seals = (await hasSeals({ store })) ? await sealsOf(store) : [];
  const keys = seals.flatMap(({ event }) => Object.values(keysOf(event)));
  const known = sealingKey === undefined ? keys : [sealingKey, ...keys];
  return hasGoodSignature(manifest, known) ? 'GOOD' : 'NOT_GOOD';
};

/** In this store's form where it is of this log. Throws RangeError for an impossible position. */
const keptHeadIn = async (
  deps: AuditDeps,
  { manifest }: z.output<typeof VerifyParameters>,
): Promise<KeptHead | undefined> => {
  if (manifest === undefined) return undefined;
  const { log, merchantId: merchant, head } = manifest;
  if (head === null) throw new RangeError('an empty export has no head');
  const isOfThisLog = log === (await logIdOf(deps.store));
  const position = isOfThisLog ? deps.store.positionOf(head.position) : head.position;
  return { ...head, position, log, merchant, signature: await signatureIn(deps, manifest) };
};

export const AUDIT_LOG_ROUTES = {
  readLog: route({
    request: { query: LogParameters },
    responses: okJson(AuditLogPage, asLines),
    handle: async (deps, { principal, query }, reply) => {
      const only = onlyOf(principal);
      const exporting = accepts(reply, NDJSON);
      if (exporting && !deps.streams.take(reply)) return rejectBusy(reply);
      if (await beginLogRead(deps, query.from, reply, exporting ? 'EXPORT' : 'LOG')) return reply;
      const send = async () =>
        exporting
          ? sendExport(deps, await exportOfLog(deps, query, only), reply)
          : reply.type(JSON_TYPE).send(await pageText(deps, { requested: query, only }));
      return (await inTurn('past', reply, send)) ?? reply;
    },
  }),
  streamLog: route({
    request: { query: StreamParameters, read: readLastEventId },
    responses: { 200: asEvents },
    handle: async (deps, { principal, query, content: lastId }, reply) => {
      if (!deps.streams.take(reply)) return rejectBusy(reply);
      const { from = 'start' } = query;
      const parameters = { from: lastId ?? from };
      await deps.record(reply.request, { action: 'STREAM', parameters });
      const args = { only: onlyOf(principal) };
      const requested = {
        principal,
        from,
        lastId,
        past: pastEvents,
        calls: {},
        args,
        textOf: eventText,
      };
      return sendLive(deps, reply, requested);
    },
  }),
  verifyLog: route({
    request: { query: VerifyParameters },
    responses: okJson(AuditVerification, asEvents),
    handle: async (deps, { principal, query }, reply) => {
      const only = onlyOf(principal);
      const keys = query.keys && deps.verifyKeys;
      if (query.keys && (keys === undefined || only !== undefined))
        return reject(reply, 'INVALID_REQUEST', [NO_KEYS]);
      let known: KeptHead | undefined;
      try {
        known = await keptHeadIn(deps, query);
      } catch (error) {
        return rejectPlace(reply, error, `position ${NO_EVENTS_POSITION}`);
      }
      await deps.record(reply.request, { action: 'VERIFY_LOG' });
      const scope = { only, known, keys };
      return (await inTurn('verifications', reply, () => verify(deps, scope, reply))) ?? reply;
    },
  }),
} satisfies Partial<RoutesOf<'audit', AuditDeps>>;

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

const statusRoute = routeWith<LogStatusDeps>();

export const LOG_ROUTES = {
  logStatus: statusRoute({
    request: { allMerchants: true, query: NoParameters },
    responses: okJson(LogStatus),
    handle: (deps, _input, reply) => {
      const { lastRunMs, lastOkMs, broken = null } = deps.verification.status();
      const times = { lastRunAt: timeOf(lastRunMs), lastOkAt: timeOf(lastOkMs) };
      return sendJson(reply, { verification: { ...times, broken }, seal: sealOf(deps) });
    },
  }),
  acknowledgeBreak: statusRoute({
    request: {
      // A break is of the log, and so of every merchant.
      allMerchants: true,
      person: true,
      ...jsonBody(AcknowledgeBreakRequest),
    },
    responses: okJson(BreakAcknowledged),
    handle: async ({ store, verification }, { principal, content }, reply) => {
      if (!(await verification.hasNamed(content)))
        return reject(reply, 'BUSINESS_RULE_VIOLATION', NOT_NAMED);
      const context = contextOf(senderOf(principal, reply));
      const { stream, revision, reason, digest, note } = content;
      const data = { stream, revision, reason, ...(digest !== undefined && { digest }), note };
      const event = { type: 'LogBreakAcknowledged', data } as const;
      const own = `${ACKNOWLEDGEMENT_STREAMS}${newUlid()}`;
      const [stored] = await appendControl(store, own, NO_EVENTS, [event], context);
      const acknowledgedAt = stored?.time;
      const { actor } = principal;
      return sendJson(reply, { stream, revision, reason, note, actor, acknowledgedAt });
    },
  }),
} satisfies Partial<RoutesOf<'projector', LogStatusDeps>>;
