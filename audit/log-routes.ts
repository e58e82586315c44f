/** The audit routes over the whole log: in pages, as an export, live, and verified. */
import type { FastifyReply } from 'fastify';
import type { z } from 'zod';
import { changesIn } from '../shared/event-store/breaks.ts';
import { logIdOf } from '../shared/event-store/chain.ts';
import { readControl } from '../shared/event-store/control-stream.ts';
import { StreamNotWhole } from '../shared/event-store/errors.ts';
import { hasGoodSignature, type Manifest } from '../shared/event-store/manifest.ts';
import { keysOf } from '../shared/event-store/seals.ts';
import type { Principal } from '../shared/http/auth/principal.ts';
import { JSON_TYPE } from '../shared/http/errors.ts';
import { asJson, type RoutesOf, routeWith, sendJson } from '../shared/http/route.ts';
import { whenGone } from '../shared/http/server/shares.ts';
import {
  accepts,
  EVENT_STREAM,
  KEEP_ALIVE,
  NDJSON,
  serverSent,
} from '../shared/http/server/streams.ts';
import { isSealEvent } from '../shared/payment/events.ts';
import { SEALS_STREAM } from '../shared/payment/seal-events.ts';
import { resultOf } from '../shared/runtime/scan.ts';
import { AuditLogPage, AuditVerification } from './contract.ts';
import { type AuditDeps, asEvents, asLines, onlyOf } from './deps.ts';
import { breakLine, COMPLETENESS_HEADER, GUARANTEE_HEADER, scopeHeaders } from './export-lines.ts';
import { rejectBusy, sendLive } from './live.ts';
import { exportTexts, isLongPage, type LogRequest, liveTexts, logPage, longPage } from './log.ts';
import {
  LogParameters,
  NO_EVENTS_POSITION,
  NO_POSITION,
  readLastEventId,
  rejectPlace,
  StreamParameters,
  startOf,
  VerifyParameters,
} from './parameters.ts';
import { type KeptHead, type LogVerification, removedFor, verifyLogForms } from './verification.ts';

const VERIFYING = 'the log is being verified for another client; try again later';

const completenessOf = ({ from, fromTime, toTime, limit }: LogRequest, isWhole: boolean) => {
  const isPart = startOf(from) !== null || fromTime !== undefined || toTime !== undefined;
  if (isPart || limit !== undefined) return 'range';
  return isWhole ? 'log' : 'streams';
};

/** False also where the seals were removed at the server: the log can still be exported. */
const hasSeals = async (store: AuditDeps['store']): Promise<boolean> => {
  try {
    return (await store.lastRevision(SEALS_STREAM)) !== null;
  } catch (error) {
    if (error instanceof StreamNotWhole) return false;
    throw error;
  }
};

const guaranteeOf = async (deps: AuditDeps): Promise<AuditVerification['guarantee']> => {
  const { guarantee } = deps.store.stored;
  return guarantee === 'stream' && (await hasSeals(deps.store)) ? 'sealed' : guarantee;
};

type LogInput = { principal: Principal; query: LogRequest };

const exportLog = async (deps: AuditDeps, { principal, query }: LogInput, reply: FastifyReply) => {
  const only = onlyOf(principal);
  const completeness = completenessOf(query, only === undefined);
  reply
    .header(COMPLETENESS_HEADER, completeness)
    .header(GUARANTEE_HEADER, only === undefined ? await guaranteeOf(deps) : 'stream')
    .headers(scopeHeaders(await logIdOf(deps.store), only));
  return deps.streams.send(reply, NDJSON, async function* (signal) {
    yield* exportTexts(deps, { requested: query, only }, signal);
    if (completeness === 'range') return;
    const { breaks } = await removedFor(deps, only, false, signal);
    for (const broken of breaks) yield `${breakLine(broken)}\n`;
  });
};

const sendPage = async (deps: AuditDeps, { principal, query }: LogInput, reply: FastifyReply) => {
  const { store: log, merchants } = deps;
  const args = { requested: query, only: onlyOf(principal) };
  if (!isLongPage(args))
    return sendJson(reply, await logPage({ log, merchants }, query, args.only));
  return reply.type(JSON_TYPE).send(await longPage(deps, args));
};

/** A head whose origin is not proved must not declare the log broken to all (gaps §25). */
const isOfKeptHead = ({ keptHead }: AuditVerification): boolean =>
  keptHead !== undefined &&
  !keptHead.found &&
  keptHead.notComparable === undefined &&
  keptHead.signature !== 'GOOD';

/** So that only a verification against as late a head clears a difference from one. */
const provenUpTo = ({ keptHead }: AuditVerification): number => {
  if (keptHead?.signature !== 'GOOD' || keptHead.notComparable !== undefined) return 0;
  return Number(keptHead.position) || 1;
};

async function* verification(deps: AuditDeps, options: LogVerification) {
  const result = yield* verifyLogForms(deps, options);
  // The streams of one merchant prove nothing about the whole log.
  if (result?.breaks !== undefined && options.only === undefined && !isOfKeptHead(result))
    deps.onVerified(changesIn(result.breaks), [result.events, provenUpTo(result)]);
  return result;
}

async function* verificationTexts(
  deps: AuditDeps,
  options: LogVerification,
): AsyncGenerator<string> {
  const steps = verification(deps, options);
  let step = await steps.next();
  for (; step.done !== true; step = await steps.next()) yield serverSent('progress', step.value);
  if (step.value !== undefined) yield serverSent('result', step.value);
}

const route = routeWith<AuditDeps>();

const signatureIn = async (
  { store, sealingKey }: AuditDeps,
  manifest: Manifest,
): Promise<'GOOD' | 'NOT_GOOD' | 'NONE'> => {
  if (manifest.signature === undefined) return 'NONE';
  // What is left of removed seals is no proof, and the export can still be verified.
  const seals = (await hasSeals(store)) ? (await readControl(store, SEALS_STREAM)).events : [];
  const keys = seals.flatMap(({ event }) => {
    if (!isSealEvent(event)) return [];
    const { before, after } = keysOf(event);
    return [before, after];
  });
  const known = sealingKey === undefined ? keys : [sealingKey, ...keys];
  return hasGoodSignature(manifest, known) ? 'GOOD' : 'NOT_GOOD';
};

type Requested = z.output<typeof VerifyParameters>;

const headOfManifest = ({ log, merchantId, head }: Manifest): Requested => {
  if (head === null) throw new RangeError('an empty export has no head');
  const { position, hash, logHash } = head;
  return { position, hash: logHash ?? hash, log, merchant: merchantId };
};

/** In this store's form where it is of this log. Throws RangeError for an impossible position. */
const keptHeadIn = async (deps: AuditDeps, requested: Requested): Promise<KeptHead | undefined> => {
  const { store } = deps;
  const { manifest } = requested;
  const { position, hash, log, merchant } = manifest ? headOfManifest(manifest) : requested;
  if (position === undefined || hash === undefined) return undefined;
  const isOfThisLog = log === (await logIdOf(store));
  const kept = {
    position: isOfThisLog ? store.positionOf(position) : position,
    hash,
    log,
    merchant,
  };
  if (manifest?.head == null) return kept;
  return { ...kept, whole: { head: manifest.head, signature: await signatureIn(deps, manifest) } };
};

export const AUDIT_LOG_ROUTES = {
  readLog: route({
    request: { query: LogParameters },
    responses: {
      200: { description: 'The response.', content: { ...asJson(AuditLogPage), ...asLines } },
    },
    handle: async (deps, input, reply) => {
      const { query } = input;
      const exporting = accepts(reply, NDJSON);
      if (exporting && !deps.streams.take(reply)) return rejectBusy(reply);
      try {
        // Throws for a wrong position, before anything is recorded or sent.
        await deps.store.readAll(startOf(query.from), 0);
        await deps.record(reply.request, { action: exporting ? 'EXPORT' : 'LOG' });
        if (!exporting) return sendPage(deps, input, reply);
      } catch (error) {
        return rejectPlace(reply, error, `from ${NO_POSITION}`);
      }
      return exportLog(deps, input, reply);
    },
  }),
  streamLog: route({
    request: { query: StreamParameters, read: readLastEventId },
    responses: { 200: { description: 'The response.', content: asEvents, unrecorded: true } },
    handle: async (deps, { principal, query, content: lastId }, reply) => {
      if (!deps.streams.take(reply)) return rejectBusy(reply);
      const { from = 'start' } = query;
      const parameters = { from: lastId ?? from };
      await deps.record(reply.request, { action: 'STREAM', parameters });
      return sendLive(deps, { principal, from, lastId }, reply, (items, after) =>
        liveTexts(deps, items, after, onlyOf(principal)),
      );
    },
  }),
  verifyLog: route({
    request: { query: VerifyParameters },
    responses: {
      200: { description: 'The response.', content: { ...asJson(AuditVerification), ...asEvents } },
    },
    handle: async (deps, { principal, query }, reply) => {
      let known: KeptHead | undefined;
      try {
        known = await keptHeadIn(deps, query);
      } catch (error) {
        return rejectPlace(reply, error, `position ${NO_EVENTS_POSITION}`);
      }
      await deps.record(reply.request, { action: 'VERIFY_LOG' });
      if (deps.verifying.now) return rejectBusy(reply, VERIFYING);
      deps.verifying.now = true;
      const leaving = new AbortController();
      whenGone(reply.raw, () => {
        deps.verifying.now = false;
        leaving.abort();
      });
      const options = { only: onlyOf(principal), known };
      if (accepts(reply, EVENT_STREAM)) {
        const source = (signal: AbortSignal) => verificationTexts(deps, { ...options, signal });
        return deps.streams.send(reply, EVENT_STREAM, source, KEEP_ALIVE);
      }
      const result = await resultOf(verification(deps, { ...options, signal: leaving.signal }));
      return result === undefined
        ? rejectBusy(reply, 'the verification was aborted')
        : sendJson(reply, result);
    },
  }),
} satisfies Partial<RoutesOf<'audit', AuditDeps>>;
