/** The audit routes about everything: the log in pages, as an export, live, and verified. */
import type { FastifyInstance, FastifyReply, onRequestHookHandler } from 'fastify';
import { RETRY_AFTER_SECONDS, refuse } from '../shared/http/errors.ts';
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
  type AuditRoom,
  accepts,
  callerOf,
  onlyOf,
  parametersOf,
  refusePosition,
  sendJson,
  startOf,
} from './deps.ts';
import { COMPLETENESS_HEADER, type Completeness, GUARANTEE_HEADER } from './export-lines.ts';
import { liveTexts, logLines, logPage, openSubscription } from './log.ts';
import { type LogVerification, verifyLogForms } from './verification.ts';

const RETRY_LATER = { 'retry-after': String(RETRY_AFTER_SECONDS) };
const POSITION = /^[A-Za-z0-9_.:/-]{1,64}$/;

const refuseBusy = (reply: FastifyReply, why: string): FastifyReply =>
  refuse(reply, 'SERVICE_UNAVAILABLE', [why], RETRY_LATER);

const refuseUnstored = (reply: FastifyReply): FastifyReply =>
  refuseBusy(reply, 'this event store does not hand out what it has stored');

const TOO_MANY = 'too many streams are open; try again later';
const VERIFYING = 'the log is being verified for somebody else; try again later';

/** Registers `/audit/v1/events`, `/audit/v1/events/stream` and `/audit/v1/verify`. */
export const registerLogRoutes = (
  app: FastifyInstance,
  guard: onRequestHookHandler,
  room: AuditRoom,
): void => {
  app.get('/audit/v1/events', { onRequest: guard }, async (request, reply) => {
    const asked = parametersOf(LogParameters, request, reply);
    if (asked === undefined) return reply;
    const only = onlyOf(callerOf(request));
    const exporting = accepts(request, NDJSON);
    if (exporting && room.store.stored === undefined) return refuseUnstored(reply);
    if (exporting && !room.streams.take(reply)) return refuseBusy(reply, TOO_MANY);
    try {
      // A wrong position is found out before anything is recorded or sent.
      await room.store.head(startOf(asked.from));
      await room.record(request, { action: exporting ? 'EXPORT' : 'LOG' });
      if (!exporting) return sendJson(reply, await logPage(room, asked, only));
    } catch (error) {
      return refusePosition(reply, error);
    }
    const { stored } = room.store;
    if (stored === undefined) return refuseUnstored(reply);
    const isPart =
      startOf(asked.from) !== null || asked.fromTime !== undefined || asked.toTime !== undefined;
    const whole: Completeness =
      only === undefined && stored.guarantee === 'log' ? 'log' : 'streams';
    reply
      .header(COMPLETENESS_HEADER, isPart || asked.limit !== undefined ? 'range' : whole)
      .header(GUARANTEE_HEADER, only === undefined ? stored.guarantee : 'stream');
    return room.streams.send(reply, NDJSON, (signal) =>
      logLines(room, stored, asked, only, signal),
    );
  });

  app.get('/audit/v1/events/stream', { onRequest: guard }, async (request, reply) => {
    const asked = parametersOf(StreamParameters, request, reply);
    if (asked === undefined) return reply;
    const lastId = soleHeader(request.raw.rawHeaders, 'last-event-id');
    if (lastId === null || (lastId !== undefined && !POSITION.test(lastId))) {
      return refuse(reply, 'INVALID_REQUEST', ['Last-Event-ID must be a position of the log']);
    }
    if (!room.streams.take(reply)) return refuseBusy(reply, TOO_MANY);
    const from = lastId ?? asked.from;
    await room.record(request, { action: 'STREAM', parameters: { from: from ?? 'start' } });
    const after = from === 'now' ? (await room.store.head(null)).position : startOf(from);
    const opening = new AbortController();
    whenGone(reply, () => opening.abort());
    try {
      const items = await openSubscription(room, after, opening.signal);
      const only = onlyOf(callerOf(request));
      const source = (signal: AbortSignal) => {
        signal.addEventListener('abort', () => opening.abort());
        return liveTexts(room, items, after, only);
      };
      return room.streams.send(reply, EVENT_STREAM, source, KEEP_ALIVE);
    } catch (error) {
      return refusePosition(reply, error);
    }
  });

  let verifying = false;
  async function* verification(options: LogVerification) {
    const result = yield* verifyLogForms(room, options);
    // A merchant's own part proves nothing of the whole, neither that it is sound nor that it is not.
    if (result !== undefined && options.only === undefined) room.onVerified(result.ok);
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

  app.get('/audit/v1/verify', { onRequest: guard }, async (request, reply) => {
    const asked = parametersOf(VerifyParameters, request, reply);
    if (asked === undefined) return reply;
    const { stored } = room.store;
    if (stored === undefined) return refuseUnstored(reply);
    await room.record(request, { action: 'VERIFY_LOG' });
    if (verifying) return refuseBusy(reply, VERIFYING);
    verifying = true;
    const leaving = new AbortController();
    whenGone(reply, () => {
      verifying = false;
      leaving.abort();
    });
    const { position, hash } = asked;
    const known = position === undefined || hash === undefined ? undefined : { position, hash };
    const options = { stored, only: onlyOf(callerOf(request)), known };
    if (accepts(request, EVENT_STREAM)) {
      const source = (signal: AbortSignal) => verificationTexts({ ...options, signal });
      return room.streams.send(reply, EVENT_STREAM, source, KEEP_ALIVE);
    }
    const result = await resultOf({ ...options, signal: leaving.signal });
    return result === undefined
      ? refuseBusy(reply, 'the verification was broken off')
      : sendJson(reply, result);
  });
};
