/** The reasons for the precautions of this driver are in ADR-0007 and docs/eventstoredb.md. */
import type { EventType } from '../../payment/events.ts';
import { mapInSlices, shareCall } from '../../runtime/scheduling.ts';
import { encode } from '../codec.ts';
import { countFailure, StoreUnavailable } from '../errors.ts';
import { decodeInOrder } from '../fold-stream.ts';
import type { EventStore } from '../port.ts';
import { createAppender, createMetaClaims, createSender } from './append.ts';
import { createRefusals } from './call-outcome.ts';
import {
  type Connection,
  connect,
  type EventStoreDbOptions,
  inTime,
  swallow,
} from './connection.ts';
import { createLogReader, type ServerLog } from './log-reader.ts';
import { openRead } from './read-call.ts';
import { PASSED_OVER_MAX, subscriptionOf } from './read-messages.ts';
import {
  comparePositions,
  fromServer,
  isOfTypes,
  type LogPosition,
  parsePosition,
  positionText,
  storedFormOf,
} from './records.ts';
import { createSeen, createStreamReader } from './stream-reader.ts';
import { subscribeAndResume } from './subscription.ts';

const PING_TIMEOUT_MS = 2000;
const PING_GOOD_FOR_MS = 1000;
const SILENCE_MS_MAX = 10_000;
const CLOSE_MS_MAX = 500;

export type EventStoreDb = EventStore & {
  /** Shared by calls within a second. Throws StoreUnavailable, also while the log is refused. */
  ping(): Promise<void>;
};

/** Calls until `close`, which waits for those under way, but not for a server that stands still (V2). */
const createLifetime = (connection: Connection) => {
  const closing = new AbortController();
  const underWay = new Set<Promise<unknown>>();
  let closed: Promise<void> | undefined;
  return {
    closing: closing.signal,
    whileOpen: async <T>(work: () => Promise<T>): Promise<T> => {
      if (closed !== undefined) throw new StoreUnavailable('the event store is closed');
      const working: Promise<T> = work().finally(() => underWay.delete(working));
      underWay.add(working);
      return working;
    },
    close: (): Promise<void> => {
      closing.abort();
      closed ??= inTime(CLOSE_MS_MAX, Promise.allSettled(underWay))
        .catch(swallow)
        .then(() => connection.close());
      return closed;
    },
  };
};

const isBehind = async (
  log: ServerLog,
  from: LogPosition | undefined,
  types?: readonly EventType[],
): Promise<boolean> => {
  if (types === undefined) return comparePositions(await log.end(), from) > 0;
  const next = await log.ownIn({ after: from, limit: PASSED_OVER_MAX, upTo: undefined });
  return next.length === PASSED_OVER_MAX || next.some((event) => isOfTypes(event, types));
};

const textOf = (position: LogPosition | undefined): string | null =>
  position === undefined ? null : positionText(position);

/** Does not wait for the server. Throws as `addressOf`. */
export async function openEventStoreDb(options: EventStoreDbOptions): Promise<EventStoreDb> {
  const connection = connect(options);
  const { callTimeoutMs } = connection;
  const seen = createSeen();
  const streams = createStreamReader(connection, seen);
  const refusals = createRefusals();
  const log = createLogReader(connection, refusals, options);
  const pingMs = Math.min(callTimeoutMs, PING_TIMEOUT_MS);
  const askServer = shareCall(() => streams.ping(pingMs), PING_GOOD_FOR_MS);
  const send = createSender(connection);
  const appendBatch = createAppender(send, streams, seen);
  const { closing, whileOpen, close } = createLifetime(connection);
  const counted = countFailure(options.metrics);

  const readAll = (...[after, limit, upTo]: Parameters<EventStore['readAll']>) =>
    whileOpen(async () => {
      if (upTo === null) return [];
      return log.ownIn({ after: parsePosition(after), limit, upTo: parsePosition(upTo ?? null) });
    });

  const stored: EventStore['stored'] = {
    guarantee: 'stream',
    readStream: (stream) =>
      whileOpen(async () => mapInSlices(await streams.whole(stream), storedFormOf)),
    readAll: (...range) => readAll(...range).then((events) => mapInSlices(events, storedFormOf)),
  };

  const claim = createMetaClaims(send, { stored, lastRevision: streams.lastRevision });

  return {
    append: (stream, expected, events) =>
      whileOpen(async () => appendBatch(stream, expected, encode(stream, expected, events))).catch(
        counted,
      ),
    readStream: (stream) => whileOpen(() => streams.readStream(stream)),
    lastRevision: (stream) => whileOpen(() => streams.lastRevision(stream)),
    readAll: (...range) => readAll(...range).then((events) => mapInSlices(events, fromServer)),
    end: () => whileOpen(async () => textOf(await log.end())),
    positionBefore: (time) => whileOpen(async () => textOf(await log.before(time))),
    positionOf: (text) => {
      const position = positionText(parsePosition(text));
      if (position === '') throw new RangeError('past every position');
      return position;
    },
    hashAt: (position) => whileOpen(() => log.hashAt(parsePosition(position))),
    head: (after) => whileOpen(() => log.head(after)),
    claimMeta: (key, value) => whileOpen(() => claim(key, value)),
    ping: () => whileOpen(() => askServer().then(refusals.rejectRefused)),
    subscribe: (after, signal, types) => {
      const until = AbortSignal.any([signal, closing]);
      const inOrder = decodeInOrder(stored);
      return subscribeAndResume(
        {
          types,
          refusals,
          open: (from, listen) =>
            openRead(connection.current(), {}, subscriptionOf(from, types), listen),
          lags: (from) => isBehind(log, from, types),
          confirmMsMax: callTimeoutMs,
          silenceMsMax: options.silenceMsMax ?? SILENCE_MS_MAX,
          backOff: options.backOff,
          logger: options.logger,
          decode: (event) =>
            types === undefined ? inOrder(storedFormOf(event)) : fromServer(event),
          onRemoval: (stream) => void seen.removals.set(stream, true),
        },
        after,
        until,
      );
    },
    stored,
    close,
  };
}
