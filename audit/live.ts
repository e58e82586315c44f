/** Live streams of events: from a place of the log until the token's end (docs/audit.md). */
import type { FastifyReply } from 'fastify';
import type { LogEvent, LogJob, Position } from '../shared/event-store/port.ts';
import { scanLog } from '../shared/event-store/scan-log.ts';
import { RETRY_LATER, reject } from '../shared/http/errors.ts';
import type { Principal } from '../shared/http/request.ts';
import { inTurn, whenGone } from '../shared/http/server/shares.ts';
import { EVENT_STREAM, serverSent } from '../shared/http/server/streams.ts';
import type { AuditDeps } from './deps.ts';
import type { PastArgs } from './log.ts';
import type { MerchantDocuments } from './merchants.ts';
import { NO_LAST_ID, NO_POSITION_NOR_NOW, rejectPlace, startOf } from './parameters.ts';

export const RETRY = 'retry: 1000\n\n';

export const rejectBusy = (
  reply: FastifyReply,
  why = 'too many streams are open; try again later',
): FastifyReply => reject(reply, 'SERVICE_UNAVAILABLE', [why], RETRY_LATER);

export const TOKEN_EXPIRED = 'token-expired';

/** The longest timer that Node has: a token of more than 24 days ends its stream then. */
const TIMER_MS_MAX = 2 ** 31 - 1;

async function* untilExpiry(
  { expiresAtSeconds = Number.POSITIVE_INFINITY }: Principal,
  left: AbortSignal,
  texts: (signal: AbortSignal) => AsyncGenerator<string>,
): AsyncGenerator<string> {
  const leftMs = Math.max(0, expiresAtSeconds * 1000 - Date.now());
  const expired = AbortSignal.timeout(Math.min(leftMs, TIMER_MS_MAX));
  yield* texts(AbortSignal.any([left, expired]));
  if (expired.aborted) yield serverSent(TOKEN_EXPIRED, {});
}

type LiveDeps = Pick<AuditDeps, 'store' | 'streams' | 'merchants'> & {
  readModels: MerchantDocuments;
};

type Requested<A extends Pick<PastArgs, 'only'>, C = object> = {
  principal: Principal;
  from: string | undefined;
  lastId: string | undefined;
  begin?: string;
  /** Gives the texts of past events, as `textOf` does. */
  past: LogJob<A & PastArgs, string, void, MerchantDocuments & C>;
  calls: C;
  args: A;
  /** Empty for an event that is not shown. */
  textOf(event: LogEvent): string | Promise<string>;
};

async function* liveTexts(
  { store, merchants }: LiveDeps,
  { args: { only }, textOf }: Pick<Requested<Pick<PastArgs, 'only'>>, 'args' | 'textOf'>,
  after: Position | null,
  signal: AbortSignal,
): AsyncGenerator<string> {
  let last = after;
  // A merchant gets one `caught-up` after its own events: more would show how busy the others are.
  let hasNews = true;
  for await (const item of store.subscribe(after, signal)) {
    if (item.kind === 'caught-up' && (only === undefined || hasNews)) {
      hasNews = false;
      // The id lets a client that began at `now` connect again before its first event.
      yield serverSent('caught-up', {}, last ?? undefined);
    }
    for (const event of item.kind === 'events' ? item.events : []) {
      last = event.position;
      if (only !== undefined && (await merchants.of(event)) !== only) continue;
      const text = await textOf(event);
      if (text === '') continue;
      hasNews = true;
      yield text;
    }
  }
}

/** Rejects a place that the log does not have. The place in `streams` has been taken. */
export const sendLive = async <A extends Pick<PastArgs, 'only'>, C extends object>(
  deps: LiveDeps,
  reply: FastifyReply,
  requested: Requested<A, C>,
): Promise<FastifyReply> => {
  const { store } = deps;
  const { from = 'start', lastId, begin = RETRY, past } = requested;
  const end = await store.end();
  let after = end;
  try {
    const place = lastId ?? from;
    if (place !== 'now') after = startOf(place);
    const isPast = after !== end && (await store.readAll(after, 1, end)).length > 0;
    if (!isPast && after !== end && after !== null && store.positionOf(after) !== end)
      throw new RangeError('past the end of the log');
    if (!isPast) after = end;
  } catch (error) {
    return rejectPlace(reply, error, lastId ? NO_LAST_ID : `from ${NO_POSITION_NOR_NOW}`);
  }
  const { promise: isRead, resolve: leave } = Promise.withResolvers<void>();
  whenGone(reply.raw, leave);
  const texts = async function* (signal: AbortSignal): AsyncGenerator<string> {
    yield begin;
    if (end !== null && after !== end) {
      const args = { ...requested.args, after, end };
      const calls = { getAny: deps.readModels.getAny, ...requested.calls };
      yield* scanLog(store, past, args, { calls, signal });
    }
    leave();
    yield* liveTexts(deps, requested, end, signal);
  };
  const source = (left: AbortSignal) => untilExpiry(requested.principal, left, texts);
  const send = (): Promise<void> => {
    deps.streams.send(reply, EVENT_STREAM, source);
    return isRead;
  };
  await (after === end ? send() : inTurn('past', reply, send));
  return reply;
};
