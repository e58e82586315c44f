import { BACKWARDS, END, FORWARDS, type ReadAllOptions, START } from '@eventstore/db-client';
import type { EventStore, HashesAt, Position } from '../port.ts';
import type { Connection, EventStoreDbOptions } from './connection.ts';
import {
  comparePositions,
  hashOfRecord,
  isOurs,
  type LogPosition,
  parsePosition,
  positionText,
  type ServerEvent,
  timeOfRecord,
} from './records.ts';
import { endedWithoutResponse } from './stream-reader.ts';

/** `after`: undefined is the start; `upTo`: left out is the end. */
type LogRange = {
  after: LogPosition | undefined;
  limit: number;
  upTo?: LogPosition | undefined;
};

const PAGE_EVENTS_MIN = 100;
const PAGE_EVENTS_MAX = 1000;
const COUNTED_EVENTS_MAX = 1000;

type LogReaderOptions = Pick<EventStoreDbOptions, 'pageEventsMax' | 'countedEventsMax'>;

const isBetween = (
  place: LogPosition | undefined,
  oldest: LogPosition | undefined,
  newest: LogPosition | undefined,
): boolean => comparePositions(oldest, place) <= 0 && comparePositions(place, newest) <= 0;

/** Each read throws StoreUnavailable. */
export function createLogReader({ read }: Connection, options: LogReaderOptions = {}) {
  const { pageEventsMax = PAGE_EVENTS_MAX, countedEventsMax = COUNTED_EVENTS_MAX } = options;
  const page = (options: ReadAllOptions) =>
    read((client) => client.readAll({ ...options, requiresLeader: true }));
  const backwards = (from: LogPosition | undefined, maxCount: number) =>
    page({ direction: BACKWARDS, fromPosition: from ?? END, maxCount });
  const forwards = (from: LogPosition | undefined, maxCount: number) =>
    page({ direction: FORWARDS, fromPosition: from ?? START, maxCount });

  async function newest(): Promise<ServerEvent> {
    const [event] = (await backwards(undefined, 1)) ?? [];
    // Every server has written events before the first of ours.
    if (event === undefined) throw endedWithoutResponse();
    return event;
  }

  /** After an empty page: throws StoreUnavailable unless the position is past the end. */
  async function mustLiePastEnd(position: LogPosition | undefined): Promise<void> {
    if (comparePositions((await newest()).position, position) >= 0) throw endedWithoutResponse();
  }

  /** The server cannot filter this read. Throws StoreUnavailable where it ends before `upTo`. */
  async function* ownPages({ after, limit, upTo }: LogRange) {
    let from = after;
    let left = limit;
    let size = Math.max(limit, PAGE_EVENTS_MIN);
    while (left > 0) {
      if (upTo !== undefined && comparePositions(from, upTo) >= 0) return;
      const count = Math.min(pageEventsMax, size) + 1;
      const page = (await forwards(from, count)) ?? [];
      const fresh = page.filter((event) => comparePositions(event.position, from) > 0);
      if (page.length === 0 || (fresh.length === 0 && upTo !== undefined))
        await mustLiePastEnd(from);
      const isIn = ({ position }: ServerEvent): boolean =>
        upTo === undefined || comparePositions(position, upTo) <= 0;
      const own = fresh.filter((event) => isOurs(event) && isIn(event)).slice(0, left);
      yield own;
      if ((page.length < count && upTo === undefined) || fresh.length === 0) return;
      left -= own.length;
      size = own.length === 0 ? 2 * size : Math.max(2 * left, PAGE_EVENTS_MIN);
      from = fresh.at(-1)?.position;
    }
  }

  async function ownIn(range: LogRange): Promise<ServerEvent[]> {
    const own: ServerEvent[] = [];
    for await (const page of ownPages(range)) own.push(...page);
    return own;
  }

  let seen: { end: LogPosition | undefined; upTo: LogPosition | undefined } | undefined;

  async function end(): Promise<LogPosition | undefined> {
    let from: LogPosition | undefined;
    let newestPlace: LogPosition | undefined;
    for (let count = 32; ; count = pageEventsMax) {
      const page = (await backwards(from, count)) ?? [];
      if (page.length === 0 && from === undefined) throw endedWithoutResponse();
      newestPlace ??= page[0]?.position;
      const oldest = page.at(-1)?.position;
      const own = page.find(isOurs);
      // An idle log ends with more and more of the server's own events; each is passed once.
      const isSeen = seen !== undefined && isBetween(seen.upTo, oldest, newestPlace);
      // A short page does not show the start: a read that broke off gives one too.
      const isStart = page.length === 0 || comparePositions(oldest, from) === 0;
      if (own !== undefined || isSeen || isStart) {
        const before = isSeen ? seen?.end : undefined;
        seen = { end: own === undefined ? before : own.position, upTo: newestPlace };
        return seen.end;
      }
      from = oldest;
    }
  }

  /** The newest of ours before this time; undefined for none. */
  async function before(time: string): Promise<LogPosition | undefined> {
    let from: LogPosition | undefined;
    for (;;) {
      const page = (await backwards(from, pageEventsMax)) ?? [];
      if (page.length === 0 && from === undefined) throw endedWithoutResponse();
      const own = page.find((event) => isOurs(event) && (timeOfRecord(event) ?? time) < time);
      const oldest = page.at(-1)?.position;
      // A read that broke off leads to an earlier place at the worst.
      const isStart = page.length === 0 || comparePositions(oldest, from) === 0;
      if (own !== undefined || isStart) return own?.position;
      from = oldest;
    }
  }

  async function hashAt(position: LogPosition | undefined): Promise<HashesAt | null> {
    const [event] = (await forwards(position, 1)) ?? [];
    if (event === undefined) await mustLiePastEnd(position);
    const isThere = event !== undefined && comparePositions(event.position, position) === 0;
    return isThere ? { hash: hashOfRecord(event) } : null;
  }

  async function head(from: Position | null): ReturnType<EventStore['head']> {
    const after = parsePosition(from);
    const upTo = await end();
    let count = 0;
    let oldestAfter: string | null = null;
    if (upTo !== undefined) {
      for await (const own of ownPages({ after, upTo, limit: countedEventsMax + 1 })) {
        if (count === 0 && own[0] !== undefined) oldestAfter = timeOfRecord(own[0]);
        count += own.length;
      }
    }
    const position = upTo === undefined ? null : positionText(upTo);
    const eventsAfter = Math.min(count, countedEventsMax);
    return { position, eventsAfter, isExact: eventsAfter === count, oldestAfter };
  }

  return { ownIn, end, before, hashAt, head };
}

export type LogReader = ReturnType<typeof createLogReader>;
