import { StoreUnavailable } from '../errors.ts';
import type { EventStore, HashesAt, Position } from '../port.ts';
import type { Refusals } from './call-outcome.ts';
import type { Connection, EventStoreDbOptions } from './connection.ts';
import { type LogPage, readLog } from './read-call.ts';
import type { LogRead } from './read-messages.ts';
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

/** A look at the end finds one of ours there mostly, or what it saw before. */
const NEWEST_EVENTS = 32;
/** Of a call's time, before which a page is whole unless its events are large. */
const PART_AFTER = 0.8;
const LATE = 'event store: no event of the log came in time';
const PAGE_EVENTS_MAX = 1000;
const COUNTED_EVENTS_MAX = 1000;

/** Throws StoreUnavailable, as all below. */
type ReadPage = (what: LogRead) => Promise<LogPage>;

async function newest(page: ReadPage): Promise<[ServerEvent, ...ServerEvent[]]> {
  const what = { whose: 'all', direction: 'backwards', from: 'end', count: NEWEST_EVENTS } as const;
  const [event, ...before] = (await page(what)).events;
  // Every server has written events before the first of ours.
  if (event === undefined) throw endedWithoutResponse();
  return [event, ...before];
}

/** A read that broke off is empty too: none is believed before the server has responded. */
async function ownPage(page: ReadPage, what: Omit<LogRead, 'whose'>): Promise<LogPage> {
  const first = await page({ ...what, whose: 'ours' });
  if (first.events.length > 0) return first;
  await newest(page);
  return page({ ...what, whose: 'ours' });
}

/** By an event in a stream of ours the server says that it is deleted: that one is none of ours. */
async function lastOwn(
  page: ReadPage,
  fits = (_event: ServerEvent): boolean => true,
  count = NEWEST_EVENTS,
): Promise<LogPosition | undefined> {
  for (let from: LogPosition | 'end' | undefined = 'end'; ; ) {
    const { events } = await ownPage(page, { direction: 'backwards', from, count });
    const own = events.find((event) => isOurs(event) && fits(event));
    if (own !== undefined || events.length === 0) return own?.position;
    from = events.at(-1)?.position;
  }
}

/** Throws StoreUnavailable where a read ends before `upTo`. */
async function* ownPages(page: ReadPage, { after, limit, upTo }: LogRange, pageEventsMax: number) {
  let from = after;
  let left = limit;
  while (left > 0) {
    if (upTo !== undefined && comparePositions(from, upTo) >= 0) return;
    const count = Math.min(pageEventsMax, left) + 1;
    const { events, isCut } = await ownPage(page, { direction: 'forwards', from, count });
    const fresh = events.filter((event) => comparePositions(event.position, from) > 0);
    if (isCut && fresh.length === 0) throw new StoreUnavailable(LATE);
    const isEnd = fresh.length === 0 || (!isCut && events.length < count && upTo === undefined);
    if (isEnd && upTo !== undefined && comparePositions(await lastOwn(page), from) > 0)
      throw endedWithoutResponse();
    const isIn = ({ position }: ServerEvent): boolean =>
      upTo === undefined || comparePositions(position, upTo) <= 0;
    const own = fresh.filter((event) => isOurs(event) && isIn(event)).slice(0, left);
    yield own;
    if (isEnd) return;
    left -= own.length;
    from = fresh.at(-1)?.position;
  }
}

export function createLogReader(
  { readBy, callTimeoutMs }: Connection,
  refusals: Pick<Refusals, 'note'>,
  options: Pick<EventStoreDbOptions, 'pageEventsMax' | 'countedEventsMax'>,
) {
  const { pageEventsMax = PAGE_EVENTS_MAX, countedEventsMax = COUNTED_EVENTS_MAX } = options;
  const page: ReadPage = async (what) => {
    const read = await readBy((client) => {
      const call = readLog(client, what, callTimeoutMs * PART_AFTER);
      void call.response.then(() => refusals.note(), refusals.note);
      return call;
    });
    return read ?? { events: [], isCut: false };
  };

  async function ownIn(range: LogRange): Promise<ServerEvent[]> {
    const own: ServerEvent[] = [];
    for await (const events of ownPages(page, range, pageEventsMax)) own.push(...events);
    return own;
  }

  let seen: { end: LogPosition | undefined; upTo: LogPosition | undefined } | undefined;

  /** Behind events of others, which the server passes over once. */
  async function endBehind(last: ServerEvent[]): Promise<LogPosition | undefined> {
    if (seen === undefined) return lastOwn(page);
    const isSeen = comparePositions(last.at(-1)?.position, seen.upTo) <= 0;
    const isSame = isSeen || (await ownIn({ after: seen.upTo, limit: 1 })).length === 0;
    return isSame ? seen.end : lastOwn(page);
  }

  async function end(): Promise<LogPosition | undefined> {
    const last = await newest(page);
    const own = last.find(isOurs)?.position;
    seen = { end: own ?? (await endBehind(last)), upTo: last[0].position };
    return seen.end;
  }

  /** The newest of ours before this time; undefined for none. */
  const before = (time: string): Promise<LogPosition | undefined> =>
    lastOwn(page, (event) => (timeOfRecord(event) ?? time) < time, pageEventsMax);

  async function hashAt(position: LogPosition | undefined): Promise<HashesAt | null> {
    const what = { whose: 'all', direction: 'forwards', from: position, count: 1 } as const;
    const [event] = (await page(what)).events;
    const isPastEnd = async () => comparePositions((await newest(page))[0].position, position) < 0;
    if (event === undefined && !(await isPastEnd())) throw endedWithoutResponse();
    const isThere = event !== undefined && comparePositions(event.position, position) === 0;
    return isThere ? { hash: hashOfRecord(event) } : null;
  }

  async function head(from: Position | null): ReturnType<EventStore['head']> {
    const after = parsePosition(from);
    const upTo = await end();
    if (upTo === undefined)
      return { position: null, eventsAfter: 0, isExact: true, oldestAfter: null };
    const found = await ownIn({ after, upTo, limit: countedEventsMax + 1 });
    const eventsAfter = Math.min(found.length, countedEventsMax);
    const oldestAfter = found[0] === undefined ? null : timeOfRecord(found[0]);
    const isExact = eventsAfter === found.length;
    return { position: positionText(upTo), eventsAfter, isExact, oldestAfter };
  }

  return { ownIn, end, before, hashAt, head };
}

export type ServerLog = ReturnType<typeof createLogReader>;
