/** Live streams of events: from a place of the log until the token's end (docs/audit.md). */
import type { FastifyReply } from 'fastify';
import type { EventStore, Position, SubscriptionItem } from '../shared/event-store/port.ts';
import { scanLog } from '../shared/event-store/scan-log.ts';
import type { Principal } from '../shared/http/auth/principal.ts';
import { RETRY_LATER, reject } from '../shared/http/errors.ts';
import { inTurn, whenGone } from '../shared/http/server/shares.ts';
import {
  EVENT_STREAM,
  KEEP_ALIVE,
  type Streams,
  serverSent,
} from '../shared/http/server/streams.ts';
import { scanCalls } from './merchants.ts';
import { NO_LAST_ID, NO_POSITION_NOR_NOW, rejectPlace, startOf } from './parameters.ts';

export const RETRY = 'retry: 1000\n\n';

export const rejectBusy = (
  reply: FastifyReply,
  why = 'too many streams are open; try again later',
): FastifyReply => reject(reply, 'SERVICE_UNAVAILABLE', [why], RETRY_LATER);

export const TOKEN_EXPIRED = 'token-expired';

/** The longest timer that Node has: a token of more than 24 days ends its stream then. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/** The texts until the token's `exp`, then an event that says so. `end` makes the texts end. */
async function* untilExpiry(
  { expiresAtSeconds = Number.POSITIVE_INFINITY }: Principal,
  texts: AsyncGenerator<string>,
  end: () => void,
): AsyncGenerator<string> {
  let isOver = false;
  const expire = (): void => {
    isOver = true;
    end();
  };
  const timer = setTimeout(expire, Math.min(expiresAtSeconds * 1000 - Date.now(), TIMER_MS_MAX));
  try {
    yield* texts;
    if (isOver) yield serverSent(TOKEN_EXPIRED, {});
  } finally {
    clearTimeout(timer);
  }
}

/** Waits for the first item. Throws RangeError where `after` is no position. */
const openSubscription = async (
  store: Pick<EventStore, 'subscribe'>,
  after: Position | null,
  signal: AbortSignal,
) => {
  const items = store.subscribe(after, signal)[Symbol.asyncIterator]();
  const first = await items.next();
  return (async function* (): AsyncGenerator<SubscriptionItem> {
    if (first.done !== true) yield first.value;
    yield* { [Symbol.asyncIterator]: () => items };
  })();
};

/** The log's end where it holds events after `after`. Throws RangeError where that is no position. */
const endOfPast = async (
  { readAll, end }: Pick<EventStore, 'readAll' | 'end'>,
  after: Position | null,
): Promise<Position | null> => {
  const last = await end();
  return last !== null && (await readAll(after, 1, last)).length > 0 ? last : null;
};

type LiveDeps = { store: EventStore; streams: Streams } & Parameters<typeof scanCalls>[0];

type Requested = {
  principal: Principal;
  from: string | undefined;
  lastId: string | undefined;
  /** Before all events. */
  begin?: string;
  /** Exports the scan `past` of these arguments: the texts of the events that the log holds already. */
  module: string;
  args: object;
  live(items: AsyncIterable<SubscriptionItem>, after: Position | null): AsyncGenerator<string>;
};

/** Rejects a place that the log does not have. The place in `streams` has been taken. */
export const sendLive = async (
  { store, streams, readModels }: LiveDeps,
  reply: FastifyReply,
  { principal, from = 'start', lastId, begin = RETRY, module, args, live }: Requested,
): Promise<FastifyReply> => {
  const place = lastId ?? from;
  const after = place === 'now' ? await store.end() : startOf(place);
  const ending = new AbortController();
  const { signal } = ending;
  const send = (texts: () => AsyncGenerator<string>): FastifyReply => {
    const source = (left: AbortSignal) => {
      left.addEventListener('abort', () => ending.abort());
      return untilExpiry(principal, texts(), () => ending.abort());
    };
    return streams.send(reply, EVENT_STREAM, source, KEEP_ALIVE);
  };
  try {
    const end = place === 'now' ? null : await endOfPast(store, after);
    if (end === null) {
      const items = await openSubscription(store, after, signal);
      return send(async function* () {
        yield begin;
        yield* live(items, after);
      });
    }
    await inTurn('past', reply, () => {
      const { promise: isRead, resolve: leave } = Promise.withResolvers<void>();
      whenGone(reply.raw, leave);
      const scan = { module, job: 'past', args: { ...args, after, end }, signal };
      send(async function* () {
        yield begin;
        yield* scanLog<string, void>(store, { ...scan, calls: scanCalls({ readModels }) });
        leave();
        yield* live(store.subscribe(end, signal), end);
      });
      return isRead;
    });
    return reply;
  } catch (error) {
    const isFrom = lastId === undefined;
    return rejectPlace(reply, error, isFrom ? `from ${NO_POSITION_NOR_NOW}` : NO_LAST_ID);
  }
};
