/** Reading the whole log of EventStoreDB, in which the server's own events lie between ours. */
import { BACKWARDS, END, FORWARDS, START } from '@eventstore/db-client';
import type { EventStore, HashesAt } from '../port.ts';
import type { Connection } from './connection.ts';
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

const PAGE_EVENTS = 1000;
/** Up to here `head` counts exactly; beyond, the true number is at least this. */
const COUNTED_EVENTS_MAX = 10_000;

/** Where an event lies in the server's log. */
export const placeOf = (event: ServerEvent | undefined): LogPosition | undefined => event?.position;

/** Reads over all streams; each of them throws StoreUnavailable. */
export function createLogReader({ read }: Connection) {
  const backwards = (from: LogPosition | undefined, maxCount: number, limits?: object) =>
    read(
      (client) =>
        client.readAll({
          direction: BACKWARDS,
          fromPosition: from ?? END,
          maxCount,
          requiresLeader: true,
        }),
      limits,
    );
  const forwards = (from: LogPosition | undefined, maxCount: number) =>
    read((client) =>
      client.readAll({
        direction: FORWARDS,
        fromPosition: from ?? START,
        maxCount,
        requiresLeader: true,
      }),
    );

  async function newest(limits?: object): Promise<ServerEvent> {
    const [event] = (await backwards(undefined, 1, limits)) ?? [];
    // Every server has events of its own before the first of ours.
    if (event === undefined) throw endedWithoutResponse();
    return event;
  }

  /** For an empty page: throws StoreUnavailable unless the position lies past the end of the log. */
  async function mustLiePastEnd(position: LogPosition | undefined): Promise<void> {
    if (comparePositions((await newest()).position, position) >= 0) throw endedWithoutResponse();
  }

  /** Pages of the log after a position, the server's own events too. A read includes its position. */
  async function* pagesAfter(after: LogPosition | undefined, limit: number) {
    let from = after;
    // The first page is small for a reader that wants little and finds it there.
    for (let size = Math.max(limit, 100); ; size = PAGE_EVENTS) {
      const count = Math.min(PAGE_EVENTS, size) + 1;
      const page = (await forwards(from, count)) ?? [];
      if (page.length === 0) await mustLiePastEnd(from);
      const fresh = page.filter((event) => comparePositions(event.position, from) > 0);
      yield fresh;
      if (page.length < count || fresh.length === 0) return;
      from = placeOf(fresh.at(-1));
    }
  }

  /** Up to `limit` events of ours after a position. The server cannot filter this read. */
  async function ownAfter(after: LogPosition | undefined, limit: number): Promise<ServerEvent[]> {
    const own: ServerEvent[] = [];
    if (limit <= 0) return own;
    for await (const page of pagesAfter(after, limit)) {
      own.push(...page.filter(isOurs));
      if (own.length >= limit) break;
    }
    return own.slice(0, limit);
  }

  /** The last event of ours, not counting the server's own events after it. */
  async function lastOwn(): Promise<ServerEvent | undefined> {
    let from: LogPosition | undefined;
    for (let count = 32; ; count = PAGE_EVENTS) {
      const page = (await backwards(from, count)) ?? [];
      if (page.length === 0 && from === undefined) throw endedWithoutResponse();
      const found = page.find(isOurs);
      const oldest = placeOf(page.at(-1));
      if (found !== undefined) return found;
      if (page.length < count || comparePositions(oldest, from) === 0) return undefined;
      from = oldest;
    }
  }

  async function hashAt(position: LogPosition | undefined): Promise<HashesAt | null> {
    const [event] = (await forwards(position, 1)) ?? [];
    if (event === undefined) await mustLiePastEnd(position);
    const isThere = event !== undefined && comparePositions(event.position, position) === 0;
    return isThere ? { hash: hashOfRecord(event) } : null;
  }

  async function countAfter(after: LogPosition | undefined) {
    let count = 0;
    let oldest: string | null = null;
    for await (const page of pagesAfter(after, PAGE_EVENTS)) {
      const own = page.filter(isOurs);
      if (count === 0 && own[0] !== undefined) oldest = timeOfRecord(own[0]);
      count += own.length;
      if (count >= COUNTED_EVENTS_MAX) break;
    }
    return { eventsAfter: count, oldestAfter: oldest };
  }

  return { newest, ownAfter, lastOwn, hashAt, countAfter };
}

type LogReader = ReturnType<typeof createLogReader>;

/** The head of the log as the port has it: the last event of ours, and what lies after a position. */
export const headOf =
  ({ lastOwn, countAfter }: LogReader): EventStore['head'] =>
  async (after) => {
    const from = parsePosition(after);
    const last = await lastOwn();
    if (last === undefined) return { position: null, eventsAfter: 0, oldestAfter: null };
    const position = positionText(last.position);
    if (comparePositions(last.position, from) <= 0) {
      return { position, eventsAfter: 0, oldestAfter: null };
    }
    return { position, ...(await countAfter(from)) };
  };
