/** The audit routes over the whole log: in pages, as an export, live, and verified. */
import type { FastifyReply } from 'fastify';
import type { z } from 'zod';
import { logIdOf } from '../shared/event-store/chain.ts';
import { readControl } from '../shared/event-store/control-stream.ts';
import { onlyOf } from '../shared/http/auth/principal.ts';
import { JSON_TYPE } from '../shared/http/errors.ts';
import { okJson, type RoutesOf, routeWith, sendJson } from '../shared/http/route.ts';
import { inTurn, whenGone } from '../shared/http/server/shares.ts';
import { accepts, EVENT_STREAM, NDJSON, serverSent } from '../shared/http/server/streams.ts';
import { isSealEvent } from '../shared/payment/events.ts';
import { SEALS_STREAM } from '../shared/payment/seal-events.ts';
import { resultOf } from '../shared/runtime/jobs.ts';
import { AuditLogPage, AuditVerification } from './contract.ts';
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
import { keysOf } from './seals/seals.ts';
import { type KeptHead, type VerifiedScope, verifyLog } from './verification.ts';

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

const signatureIn = async (
  { store, sealingKey }: AuditDeps,
  manifest: Manifest,
): Promise<'GOOD' | 'NOT_GOOD' | 'NONE'> => {
  if (manifest.signature === undefined) return 'NONE';
  // What is left of removed seals is no proof, and the export can still be verified.
  const seals = (await hasSeals({ store })) ? (await readControl(store, SEALS_STREAM)).events : [];
  const keys = seals.flatMap(({ event }) =>
    isSealEvent(event) ? Object.values(keysOf(event)) : [],
  );
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
    responses: { 200: { description: 'The response.', content: asEvents } },
    handle: async (deps, { principal, query, content: lastId }, reply) => {
      if (!deps.streams.take(reply)) return rejectBusy(reply);
      const { from = 'start' } = query;
      const parameters = { from: lastId ?? from };
      await deps.record(reply.request, { action: 'STREAM', parameters });
      const args = { only: onlyOf(principal) };
      const requested = { principal, from, lastId, past: pastEvents, args, textOf: eventText };
      return sendLive(deps, reply, requested);
    },
  }),
  verifyLog: route({
    request: { query: VerifyParameters },
    responses: okJson(AuditVerification, asEvents),
    handle: async (deps, { principal, query }, reply) => {
      let known: KeptHead | undefined;
      try {
        known = await keptHeadIn(deps, query);
      } catch (error) {
        return rejectPlace(reply, error, `position ${NO_EVENTS_POSITION}`);
      }
      await deps.record(reply.request, { action: 'VERIFY_LOG' });
      const scope = { only: onlyOf(principal), known };
      return (await inTurn('verifications', reply, () => verify(deps, scope, reply))) ?? reply;
    },
  }),
} satisfies Partial<RoutesOf<'audit', AuditDeps>>;
