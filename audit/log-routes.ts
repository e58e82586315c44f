/** The audit routes about everything: the log in pages, as an export, live, and verified. */
import type { FastifyInstance, FastifyReply, onRequestHookHandler } from 'fastify';
import { RETRY_AFTER_SECONDS, reject } from '../shared/http/errors.ts';
import { soleHeader } from '../shared/http/headers.ts';
import {
  EVENT_STREAM,
  KEEP_ALIVE,
  NDJSON,
  serverSent,
  whenGone,
} from '../shared/http/server/streams.ts';
import {
  type AuditVerification,
  LogParameters,
  StreamParameters,
  VerifyParameters,
} from './contract.ts';
import {
  type AuditDeps,
  accepts,
  onlyOf,
  parametersOf,
  principalOf,
  rejectPosition,
  sendJson,
  startOf,
} from './deps.ts';
import { COMPLETENESS_HEADER, type Completeness, GUARANTEE_HEADER } from './export-lines.ts';
import { liveTexts, logLines, logPage, openSubscription } from './log.ts';
import { type LogVerification, verifyLogForms } from './verification.ts';

const RETRY_LATER = { 'retry-after': String(RETRY_AFTER_SECONDS) };
const POSITION = /^[A-Za-z0-9_.:/-]{1,64}$/;

const rejectBusy = (reply: FastifyReply, why: string): FastifyReply =>
  reject(reply, 'SERVICE_UNAVAILABLE', [why], RETRY_LATER);

const TOO_MANY = 'too many streams are open; try again later';
const VERIFYING = 'the log is being verified for somebody else; try again later';

/** Registers `/audit/v1/events`, `/audit/v1/events/stream` and `/audit/v1/verify`. */
export const registerLogRoutes = (
  app: FastifyInstance,
  authorize: onRequestHookHandler,
  deps: AuditDeps,
): void => {
  app.get('/audit/v1/events', { onRequest: authorize }, async (request, reply) => {
    const requested = parametersOf(LogParameters, request, reply);
    if (requested === undefined) return reply;
    const only = onlyOf(principalOf(request));
    const exporting = accepts(request, NDJSON);
    if (exporting && !deps.streams.take(reply)) return rejectBusy(reply, TOO_MANY);
    try {
      // A wrong position is found out before anything is recorded or sent.
      await deps.store.head(startOf(requested.from));
      await deps.record(request, { action: exporting ? 'EXPORT' : 'LOG' });
      if (!exporting) return sendJson(reply, await logPage(deps, requested, only));
    } catch (error) {
      return rejectPosition(reply, error);
    }
    const { stored } = deps.store;
    const isPart =
      startOf(requested.from) !== null ||
      requested.fromTime !== undefined ||
      requested.toTime !== undefined;
    const whole: Completeness =
      only === undefined && stored.guarantee === 'log' ? 'log' : 'streams';
    reply
      .header(COMPLETENESS_HEADER, isPart || requested.limit !== undefined ? 'range' : whole)
      .header(GUARANTEE_HEADER, only === undefined ? stored.guarantee : 'stream');
    return deps.streams.send(reply, NDJSON, (signal) =>
      logLines(deps, stored, requested, only, signal),
    );
  });

  app.get('/audit/v1/events/stream', { onRequest: authorize }, async (request, reply) => {
    const requested = parametersOf(StreamParameters, request, reply);
    if (requested === undefined) return reply;
    const lastId = soleHeader(request.raw.rawHeaders, 'last-event-id');
    if (lastId === null || (lastId !== undefined && !POSITION.test(lastId))) {
      return reject(reply, 'INVALID_REQUEST', ['Last-Event-ID must be a position of the log']);
    }
    if (!deps.streams.take(reply)) return rejectBusy(reply, TOO_MANY);
    const from = lastId ?? requested.from;
    await deps.record(request, { action: 'STREAM', parameters: { from: from ?? 'start' } });
    const after = from === 'now' ? (await deps.store.head(null)).position : startOf(from);
    const opening = new AbortController();
    whenGone(reply, () => opening.abort());
    try {
      const items = await openSubscription(deps, after, opening.signal);
      const only = onlyOf(principalOf(request));
      const source = (signal: AbortSignal) => {
        signal.addEventListener('abort', () => opening.abort());
        return liveTexts(deps, items, after, only);
      };
      return deps.streams.send(reply, EVENT_STREAM, source, KEEP_ALIVE);
    } catch (error) {
      return rejectPosition(reply, error);
    }
  });

  let verifying = false;
  async function* verification(options: LogVerification) {
    const result = yield* verifyLogForms(deps, options);
    // A merchant's own part proves nothing of the whole, neither that it is sound nor that it is not.
    if (result !== undefined && options.only === undefined) deps.onVerified(result.ok);
    return result;
  }
  async function* verificationTexts(options: LogVerification): AsyncGenerator<string> {
    const steps = verification(options);
    let step = await steps.next();
    while (step.done !== true) {
      yield serverSent('progress', step.value);
      step = await steps.next();
    }
    if (step.value !== undefined) yield serverSent('result', step.value);
  }
  const resultOf = async (options: LogVerification): Promise<AuditVerification | undefined> => {
    const steps = verification(options);
    let step = await steps.next();
    while (step.done !== true) step = await steps.next();
    return step.value;
  };

  app.get('/audit/v1/verify', { onRequest: authorize }, async (request, reply) => {
    const requested = parametersOf(VerifyParameters, request, reply);
    if (requested === undefined) return reply;
    const { stored } = deps.store;
    await deps.record(request, { action: 'VERIFY_LOG' });
    if (verifying) return rejectBusy(reply, VERIFYING);
    verifying = true;
    const leaving = new AbortController();
    whenGone(reply, () => {
      verifying = false;
      leaving.abort();
    });
    const { position, hash } = requested;
    const known = position === undefined || hash === undefined ? undefined : { position, hash };
    const options = { stored, only: onlyOf(principalOf(request)), known };
    if (accepts(request, EVENT_STREAM)) {
      const source = (signal: AbortSignal) => verificationTexts({ ...options, signal });
      return deps.streams.send(reply, EVENT_STREAM, source, KEEP_ALIVE);
    }
    const result = await resultOf({ ...options, signal: leaving.signal });
    return result === undefined
      ? rejectBusy(reply, 'the verification was broken off')
      : sendJson(reply, result);
  });
};
